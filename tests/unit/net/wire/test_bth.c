/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/net/wire/wire_test.h"

#include "net/wire/bth.h"
#include "net/wire/roce_opcode.h"

static void test_bth_is_parsed_and_emitted(void **state)
{
    DIRTY(out, BTH_LEN);
    struct bth bth;

    (void)state;
    assert_true(bth_parse(&bth, bth_and_aeth, sizeof(bth_and_aeth)));
    assert_int_equal(bth.opcode, RC_ACKNOWLEDGE);
    assert_int_equal(bth.pad_bytes, 2);
    assert_true(bth.solicited);
    assert_true(bth.migrated);
    assert_true(bth.fecn);
    assert_true(bth.becn);
    assert_true(bth.ack_requested);
    assert_int_equal(bth.pkey, 0x8001);
    assert_int_equal(bth.dest_qp, 0xabcdef);
    assert_int_equal(bth.psn, 0x123456);
    bth_emit(&bth, out);
    assert_memory_equal(out, bth_and_aeth, BTH_LEN);
}

static void test_bth_flags_are_one_bit_each(void **state)
{
    static const struct {
        size_t offset;
        uint8_t bits;
        struct bth bth;
    } rows[] = {
        {BTH_FLAGS, 0x80, {.solicited = true}},
        {BTH_FLAGS, 0x40, {.migrated = true}},
        {BTH_FLAGS, 0x30, {.pad_bytes = 3}},
        {BTH_FECN, 0x80, {.fecn = true}},
        {BTH_FECN, 0x40, {.becn = true}},
        {BTH_ACK_REQ, 0x80, {.ack_requested = true}},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        uint8_t expected[BTH_LEN] = {0};
        DIRTY(out, BTH_LEN);
        struct bth bth;

        expected[rows[i].offset] = rows[i].bits;
        bth_emit(&rows[i].bth, out);
        assert_memory_equal(out, expected, BTH_LEN);
        assert_true(bth_parse(&bth, expected, sizeof(expected)));
        bth_emit(&bth, out);
        assert_memory_equal(out, expected, BTH_LEN);
    }
}

static void test_bth_parse_refuses_other_transport_versions(void **state)
{
    struct bth bth;

    (void)state;
    for (uint8_t version = 1; version < 16; version++) {
        uint8_t buf[BTH_LEN];

        memcpy(buf, bth_and_aeth, BTH_LEN);
        buf[BTH_FLAGS] |= version;
        assert_false(bth_parse(&bth, buf, sizeof(buf)));
    }
}

static void test_bth_parse_ignores_reserved_bits(void **state)
{
    uint8_t buf[BTH_LEN];
    struct bth bth, clean;

    (void)state;
    memcpy(buf, bth_and_aeth, BTH_LEN);
    assert_true(bth_parse(&clean, buf, BTH_LEN));
    buf[BTH_FECN] |= 0x3f;
    buf[BTH_ACK_REQ] |= 0x7f;
    assert_true(bth_parse(&bth, buf, BTH_LEN));
    assert_int_equal(bth.dest_qp, clean.dest_qp);
    assert_int_equal(bth.psn, clean.psn);
}

static void test_bth_parse_refuses_every_truncation(void **state)
{
    struct bth bth;

    (void)state;
    ASSERT_TRUNCATIONS_REFUSED(bth_parse, &bth, bth_and_aeth, BTH_LEN);
}
