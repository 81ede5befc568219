/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/net/wire/wire_test.h"

#include "net/wire/lacp.h"
#include "tests/unit/net/wire/golden_lacp.h"

static void test_lacp_is_parsed_and_emitted(void **state)
{
    static const struct mac_addr actor = {{0x00, 0x13, 0xc4, 0x12, 0x0f, 0}};
    static const struct mac_addr partner = {{0x00, 0x0e, 0x83, 0x16, 0xf5, 0}};
    DIRTY(out, SLOW_LEN);
    struct lacp lacp;

    (void)state;
    assert_int_equal(sizeof(lacp_golden), SLOW_LEN);
    assert_true(lacp_parse(&lacp, lacp_golden, sizeof(lacp_golden)));
    assert_int_equal(lacp.actor.system_priority, 32768);
    assert_true(mac_addr_equal(&lacp.actor.system, &actor));
    assert_int_equal(lacp.actor.key, 13);
    assert_int_equal(lacp.actor.port_priority, 32768);
    assert_int_equal(lacp.actor.port, 22);
    assert_int_equal(lacp.actor.state,
                     LACP_ACTIVITY | LACP_AGGREGATION | LACP_EXPIRED);
    assert_int_equal(lacp.partner.system_priority, 32768);
    assert_true(mac_addr_equal(&lacp.partner.system, &partner));
    assert_int_equal(lacp.partner.key, 13);
    assert_int_equal(lacp.partner.port_priority, 32768);
    assert_int_equal(lacp.partner.port, 25);
    assert_int_equal(lacp.partner.state, LACP_TIMEOUT | LACP_AGGREGATION |
                                             LACP_COLLECTING |
                                             LACP_DISTRIBUTING);
    assert_int_equal(lacp.max_delay, 32768);
    lacp_emit(&lacp, out);
    assert_memory_equal(out, lacp_golden, SLOW_LEN);
}

static void test_lacp_parse_refuses_every_truncation(void **state)
{
    struct lacp lacp;

    (void)state;
    ASSERT_TRUNCATIONS_REFUSED(lacp_parse, &lacp, lacp_golden, SLOW_LEN);
}

/* Clause 5.4.12: lengths are checked, version and types are not. */
static void test_lacp_parse_checks_only_subtype_and_lengths(void **state)
{
    static const size_t judged[] = {SLOW_SUBTYPE, LACP_ACTOR + 1,
                                    LACP_PARTNER + 1, LACP_COLLECTOR + 1,
                                    LACP_TERMINATOR + 1};

    (void)state;
    for (size_t i = 0; i < SLOW_LEN; i++) {
        uint8_t bent[SLOW_LEN];
        struct lacp lacp;
        bool is_judged = false;

        memcpy(bent, lacp_golden, sizeof(bent));
        bent[i] ^= 0x40;
        for (size_t k = 0; k < ARRAY_LEN(judged); k++) {
            is_judged |= judged[k] == i;
        }
        assert_int_equal(lacp_parse(&lacp, bent, sizeof(bent)), !is_judged);
    }
}

static void test_marker_is_parsed_and_emitted(void **state)
{
    static const struct mac_addr system = {{0x00, 0x13, 0xc4, 0x12, 0x0f, 0}};
    DIRTY(out, SLOW_LEN);
    struct marker marker;

    (void)state;
    assert_true(marker_parse(&marker, marker_golden, sizeof(marker_golden)));
    assert_false(marker.is_response);
    assert_int_equal(marker.port, 22);
    assert_true(mac_addr_equal(&marker.system, &system));
    assert_int_equal(marker.transaction, 0xdeadbeef);
    marker_emit(&marker, out);
    assert_memory_equal(out, marker_golden, SLOW_LEN);

    marker.is_response = true; /* a response differs in one byte */
    marker_emit(&marker, out);
    assert_true(marker_parse(&marker, out, sizeof(out)));
    assert_true(marker.is_response);
    out[MARKER_TLV] = marker_golden[MARKER_TLV];
    assert_memory_equal(out, marker_golden, SLOW_LEN);
}

static void test_marker_parse_refuses_other_pdus(void **state)
{
    uint8_t bent[SLOW_LEN];
    struct marker marker;

    (void)state;
    ASSERT_TRUNCATIONS_REFUSED(marker_parse, &marker, marker_golden, SLOW_LEN);
    assert_false(marker_parse(&marker, lacp_golden, sizeof(lacp_golden)));
    memcpy(bent, marker_golden, sizeof(bent));
    bent[MARKER_TLV] = 3;
    assert_false(marker_parse(&marker, bent, sizeof(bent)));
    bent[MARKER_TLV] = 1;
    bent[MARKER_TLV + 1] = 15;
    assert_false(marker_parse(&marker, bent, sizeof(bent)));
}
