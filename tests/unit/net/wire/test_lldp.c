/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/net/wire/wire_test.h"

#include "lib/bytes.h"
#include "net/wire/lldp.h"
#include "tests/unit/net/wire/golden_services.h"

enum { MANDATORY_LEN = 9 + 9 + 4 };

static void expect_text(const struct lldp_text *text, const char *expected)
{
    assert_int_equal(text->len_bytes, strlen(expected));
    assert_memory_equal(text->bytes, expected, text->len_bytes);
}

static void expect_golden(const struct lldp *lldp)
{
    assert_int_equal(lldp->chassis.subtype, LLDP_CHASSIS_MAC);
    assert_int_equal(lldp->chassis.value.len_bytes, 6);
    assert_int_equal(lldp->chassis.value.bytes[5], 0x56);
    assert_int_equal(lldp->port.subtype, LLDP_PORT_MAC);
    assert_int_equal(lldp->port.value.bytes[5], 0x57);
    assert_int_equal(lldp->ttl_s, 120);
    expect_text(&lldp->system_name, "host");
    expect_text(&lldp->system_description, "Linux");
    expect_text(&lldp->port_description, "eth0");
    assert_true(lldp->has_capabilities);
    assert_int_equal(lldp->capabilities, 0x9c);
    assert_int_equal(lldp->capabilities_enabled, LLDP_CAN_STATION);
    assert_int_equal(lldp->management_count, 2);
    assert_int_equal(ip_addr_to_v4(&lldp->management[0].ip), 0x0a000001);
    assert_int_equal(lldp->management[0].interface_subtype,
                     LLDP_INTERFACE_IFINDEX);
    assert_int_equal(lldp->management[0].interface, 2);
    assert_int_equal(lldp->management[1].ip.bytes[0], 0xfe);
    assert_int_equal(lldp->management[1].ip.bytes[15], 0x56);
    assert_int_equal(lldp->pvid, 1);
    assert_int_equal(lldp->vlan_count, 1);
    assert_int_equal(lldp->vlans[0].vlan, 9);
    expect_text(&lldp->vlans[0].name, "vlan");
    assert_true(lldp->has_mac_phy);
    assert_int_equal(lldp->autoneg, 3);
    assert_int_equal(lldp->pmd, 0x8000);
    assert_int_equal(lldp->mau_type, LLDP_MAU_25GBASE_R);
    assert_int_equal(lldp->max_frame, 1522);
}

static void test_lldp_parse_reads_the_golden_bytes(void **state)
{
    uint8_t padded[sizeof(lldp_golden) + 20] = {0};
    struct lldp lldp;

    (void)state;
    assert_true(lldp_parse(&lldp, lldp_golden, sizeof(lldp_golden)));
    expect_golden(&lldp);
    assert_int_equal(lldp.len_bytes, sizeof(lldp_golden));
    memcpy(padded, lldp_golden, sizeof(lldp_golden));
    assert_true(lldp_parse(&lldp, padded, sizeof(padded)));
    assert_int_equal(lldp.len_bytes, sizeof(lldp_golden));
}

static void test_lldp_emit_reproduces_a_parsed_lldpdu(void **state)
{
    DIRTY(once, 400);
    DIRTY(twice, 400);
    struct lldp lldp, again;
    size_t len;

    (void)state;
    assert_true(lldp_parse(&lldp, lldp_golden, sizeof(lldp_golden)));
    len = lldp_emit(&lldp, once, sizeof(once));
    assert_int_equal(len, sizeof(lldp_golden) -
                              9); /* without the TLV that we skip */
    assert_true(lldp_parse(&again, once, len));
    expect_golden(&again);
    assert_int_equal(lldp_emit(&again, twice, sizeof(twice)), len);
    assert_memory_equal(once, twice, sizeof(once));
    for (size_t room = 0; room < len; room++) {
        assert_int_equal(lldp_emit(&lldp, twice, room), 0);
    }
}

/* The three mandatory TLVs, byte for byte: clause 8.5. */
static void test_lldp_emit_writes_a_shutdown_of_three_tlvs(void **state)
{
    static const uint8_t mac[6] = {2, 0, 0, 0, 0, 1};
    static const uint8_t expected[] = {
        0x02, 0x07, 0x04, 2,   0,   0,    0,    0,    1,    0x04, 0x06, 0x05,
        'p',  'o',  'r',  't', '0', 0x06, 0x02, 0x00, 0x00, 0x00, 0x00};
    const struct lldp lldp = {
        .chassis = {{mac, 6}, LLDP_CHASSIS_MAC},
        .port = {{(const uint8_t *)"port0", 5}, LLDP_PORT_IFNAME},
    };
    DIRTY(out, 64);

    (void)state;
    assert_int_equal(lldp_emit(&lldp, out, sizeof(out)), sizeof(expected));
    assert_memory_equal(out, expected, sizeof(expected));
    assert_int_equal(out[sizeof(expected)], 0xa5);
}

/* Truncations everywhere, except between TLVs after the mandatory ones. */
static void test_lldp_parse_refuses_truncations(void **state)
{
    size_t boundary = MANDATORY_LEN;
    struct lldp lldp;

    (void)state;
    ASSERT_TRUNCATIONS_REFUSED(lldp_parse, &lldp, lldp_golden, MANDATORY_LEN);
    for (size_t cut = MANDATORY_LEN; cut < sizeof(lldp_golden); cut++) {
        uint8_t *copy = malloc(cut);
        bool is_boundary = cut == boundary;

        if (is_boundary) {
            boundary += 2u + (get_be16(lldp_golden + cut) & 0x1ff);
        }
        assert_non_null(copy);
        memcpy(copy, lldp_golden, cut);
        assert_int_equal(lldp_parse(&lldp, copy, cut), is_boundary);
        free(copy);
    }
}

static bool parse_with(size_t at, uint8_t value)
{
    uint8_t buf[sizeof(lldp_golden)];
    struct lldp lldp;

    memcpy(buf, lldp_golden, sizeof(buf));
    buf[at] = value;
    return lldp_parse(&lldp, buf, sizeof(buf));
}

static void test_lldp_parse_refuses_as_clause_9_2_7_7_1_requires(void **state)
{
    (void)state;
    assert_false(parse_with(0, 0x04));  /* a port ID first */
    assert_false(parse_with(9, 0x02));  /* two chassis IDs */
    assert_false(parse_with(18, 0x08)); /* no TTL */
    assert_false(parse_with(1, 1));     /* a chassis ID of no bytes */
    assert_false(parse_with(19, 1));    /* half a TTL */
    assert_false(parse_with(22, 0x02)); /* a second chassis ID later on */
    assert_false(parse_with(22, 0x04));
    assert_false(parse_with(22, 0x06));
    assert_false(parse_with(23, 0xff)); /* beyond the end */
    /* An end TLV must not have a value. */
    assert_false(parse_with(sizeof(lldp_golden) - 1, 1));
}

/* Parse one TLV after the mandatory ones.  @return false if that is refused */
static bool parse_one(struct lldp *lldp, const uint8_t *tlv, size_t len)
{
    static uint8_t buf[MANDATORY_LEN + 600];

    memcpy(buf, lldp_golden, MANDATORY_LEN);
    memcpy(buf + MANDATORY_LEN, tlv, len);
    return lldp_parse(lldp, buf, MANDATORY_LEN + len);
}

/* Each optional TLV, with every length, is skipped when it is too short. */
static void test_lldp_parse_skips_optional_tlvs_of_a_wrong_length(void **state)
{
    size_t at = MANDATORY_LEN;

    (void)state;
    while (at < sizeof(lldp_golden) - 2) {
        uint16_t len = get_be16(lldp_golden + at) & 0x1ff;

        for (uint16_t cut = 0; cut < len; cut++) {
            uint8_t tlv[64];
            struct lldp lldp;

            memcpy(tlv, lldp_golden + at, 2u + cut);
            put_be16(tlv,
                     (uint16_t)((get_be16(lldp_golden + at) & 0xfe00) | cut));
            assert_true(parse_one(&lldp, tlv, 2u + cut));
            if (lldp_golden[at] == 0x0e) {
                assert_false(lldp.has_capabilities);
            } else if (lldp_golden[at] == 0x10) {
                assert_int_equal(lldp.management_count, 0);
            } else if (lldp_golden[at] == 0xfe) {
                assert_int_equal(lldp.pvid, 0);
                assert_int_equal(lldp.vlan_count, 0);
                assert_false(lldp.has_mac_phy);
                assert_int_equal(lldp.max_frame, 0);
            }
        }
        at += 2u + len;
    }
}

static void test_lldp_parse_limits_texts_addresses_and_vlans(void **state)
{
    static uint8_t tlv[8 * 20];
    uint8_t text[2 + 256] = {0x0b, 0x00}; /* a system name of 256 bytes */
    struct lldp lldp;

    (void)state;
    assert_true(parse_one(&lldp, text, sizeof(text)));
    assert_null(lldp.system_name.bytes);
    text[0] = 0x0a;
    text[1] = 0xff;
    assert_true(parse_one(&lldp, text, 2 + 255));
    assert_int_equal(lldp.system_name.len_bytes, 255);
    for (size_t i = 0; i < 8; i++) {
        static const uint8_t one[] = {0x10, 0x0c, 5, 1, 10, 0, 0,
                                      1,    2,    0, 0, 0,  1, 0};

        memcpy(tlv + i * sizeof(one), one, sizeof(one));
    }
    assert_true(parse_one(&lldp, tlv, 8 * 14));
    assert_int_equal(lldp.management_count, LLDP_MANAGEMENTS);
    for (size_t i = 0; i < 8; i++) {
        static const uint8_t one[] = {0xfe, 7, 0, 0x80, 0xc2, 3, 0, 5, 0};

        memcpy(tlv + i * sizeof(one), one, sizeof(one));
    }
    assert_true(parse_one(&lldp, tlv, 8 * 9));
    assert_int_equal(lldp.vlan_count, LLDP_VLANS);
}
