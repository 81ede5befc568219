/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/net/wire/wire_test.h"

#include "net/wire/dhcp.h"
#include "tests/unit/net/wire/golden_services.h"

static const struct mac_addr mac = {{0x52, 0x54, 0x00, 0x12, 0x34, 0x56}};

static void test_dhcp_parse_reads_the_options_of_an_ack(void **state)
{
    struct ip_addr ip;
    struct dhcp dhcp;

    (void)state;
    assert_true(dhcp_parse(&dhcp, dhcp_ack, sizeof(dhcp_ack)));
    assert_true(dhcp.is_reply);
    assert_true(dhcp.is_broadcast);
    assert_int_equal(dhcp.type, DHCP_ACK);
    assert_int_equal(dhcp.xid, 0x11223344);
    assert_true(mac_addr_equal(&dhcp.chaddr, &mac));
    assert_true(ip_addr_is_unspecified(&dhcp.ciaddr));
    ip = ip_addr_from_v4(0x0a00004d);
    assert_true(ip_addr_equal(&dhcp.yiaddr, &ip));
    ip = ip_addr_from_v4(0x0a000001);
    assert_true(ip_addr_equal(&dhcp.server, &ip));
    ip = ip_addr_from_v4(0x0a0000fe); /* the first of two */
    assert_true(ip_addr_equal(&dhcp.router, &ip));
    ip = ip_addr_from_v4(0x0a000005);
    assert_true(ip_addr_equal(&dhcp.ntp_server, &ip));
    assert_true(dhcp.has_mask);
    assert_int_equal(dhcp.prefix_bits, 23);
    assert_int_equal(dhcp.lease_s, 120);
    assert_int_equal(dhcp.t1_s, 60);
    assert_int_equal(dhcp.t2_s, 105);
    assert_int_equal(dhcp.mtu_bytes, 1400);
    assert_int_equal(dhcp.host_name.len_bytes, 0);
}

static void test_dhcp_is_parsed_and_emitted(void **state)
{
    DIRTY(out, sizeof(dhcp_discover));
    struct dhcp dhcp;

    (void)state;
    assert_true(dhcp_parse(&dhcp, dhcp_discover, sizeof(dhcp_discover)));
    assert_false(dhcp.is_reply);
    assert_int_equal(dhcp.type, DHCP_DISCOVER);
    assert_int_equal(dhcp.secs, 5);
    assert_int_equal(dhcp.max_len_bytes, 1400);
    assert_int_equal(dhcp.client.len_bytes, 7);
    assert_int_equal(dhcp.parameters.len_bytes, 8);
    assert_int_equal(dhcp.host_name.len_bytes, 5);
    assert_memory_equal(dhcp.host_name.bytes, "rack7", 5);
    assert_int_equal(dhcp_emit(&dhcp, out, sizeof(out)), sizeof(out));
    assert_memory_equal(out, dhcp_discover, sizeof(out));
}

static void test_dhcp_parse_refuses_every_truncation(void **state)
{
    struct dhcp dhcp;

    (void)state; /* the end option is the last byte */
    ASSERT_TRUNCATIONS_REFUSED(dhcp_parse, &dhcp, dhcp_ack, sizeof(dhcp_ack));
}

static void test_dhcp_emit_refuses_every_buffer_that_is_too_small(void **state)
{
    DIRTY(out, 400);
    struct dhcp dhcp;
    size_t len;

    (void)state;
    assert_true(dhcp_parse(&dhcp, dhcp_ack, sizeof(dhcp_ack)));
    len = dhcp_emit(&dhcp, out, sizeof(out));
    assert_int_equal(len, DHCP_LEN_MIN);
    dhcp.host_name = (struct dhcp_bytes){
        (const uint8_t *)"a-name-of-forty-characters-or-so", 32};
    len = dhcp_emit(&dhcp, out, sizeof(out));
    assert_in_range(len, DHCP_LEN_MIN + 1, sizeof(out));
    for (size_t room = 0; room < len; room++) {
        uint8_t *small = malloc(room != 0 ? room : 1);

        assert_non_null(small);
        assert_int_equal(dhcp_emit(&dhcp, small, room), 0);
        free(small);
    }
    assert_int_equal(dhcp_emit(&dhcp, out, len), len);
}

/* Parse a reply with these options after its message type, and an end
 * option. */
static bool parse_with(struct dhcp *dhcp, const uint8_t *options, size_t len)
{
    uint8_t buf[512] = {0};

    memcpy(buf, dhcp_ack, DHCP_OPTIONS + 3);
    memcpy(buf + DHCP_OPTIONS + 3, options, len);
    buf[DHCP_OPTIONS + 3 + len] = DHCP_OPTION_END;
    return dhcp_parse(dhcp, buf, DHCP_OPTIONS + 3 + len + 1);
}

#define PARSES(...)                                                            \
    parse_with(&dhcp, (const uint8_t[]){__VA_ARGS__},                          \
               sizeof((const uint8_t[]){__VA_ARGS__}))

static void test_dhcp_options_have_valid_lengths_and_occur_once(void **state)
{
    struct dhcp dhcp;

    (void)state;
    assert_true(PARSES(0, 0, 54, 4, 10, 0, 0, 1));
    assert_false(PARSES(54, 3, 10, 0, 0));
    assert_false(PARSES(54, 8, 10, 0, 0, 1, 10, 0, 0, 2));
    assert_false(PARSES(54, 4, 10, 0, 0, 1, 54, 4, 10, 0, 0, 1));
    assert_false(PARSES(53, 1, 5)); /* a second message type */
    assert_false(PARSES(51, 2, 0, 9));
    assert_false(PARSES(58, 0));
    assert_false(PARSES(59, 5, 0, 0, 0, 0, 1));
    assert_false(PARSES(26, 2, 0, 67)); /* too small for an MTU */
    assert_true(PARSES(26, 2, 0, 68));
    assert_false(PARSES(57, 2, 2, 63));
    assert_false(PARSES(3, 0));
    assert_false(PARSES(42, 6, 1, 1, 1, 1, 2, 2));
    assert_false(PARSES(12, 0));
    assert_false(PARSES(61, 1, 0));
    assert_false(PARSES(55, 0));
    assert_true(PARSES(250, 3, 1, 2, 3)); /* an unknown option */
    /* The option at 5 has no end. */
    assert_false(PARSES(250, 4, 1, 2, 3, 4, 5));
}

static void test_dhcp_parse_refuses_masks_with_holes(void **state)
{
    struct dhcp dhcp;

    (void)state;
    assert_true(PARSES(1, 4, 255, 255, 255, 255));
    assert_int_equal(dhcp.prefix_bits, 32);
    assert_true(PARSES(1, 4, 0, 0, 0, 0));
    assert_true(dhcp.has_mask);
    assert_int_equal(dhcp.prefix_bits, 0);
    assert_true(PARSES(1, 4, 255, 128, 0, 0));
    assert_int_equal(dhcp.prefix_bits, 9);
    assert_false(PARSES(1, 4, 255, 0, 255, 0));
    assert_false(PARSES(1, 4, 0, 0, 0, 255));
}

static void test_dhcp_options_may_be_in_file_and_sname(void **state)
{
    uint8_t buf[DHCP_OPTIONS + 16] = {0};
    struct dhcp dhcp;

    (void)state;
    memcpy(buf, dhcp_ack, DHCP_OPTIONS + 3);
    memcpy(buf + DHCP_OPTIONS + 3, (const uint8_t[]){52, 1, 3, 255}, 4);
    memcpy(buf + DHCP_FILE, (const uint8_t[]){51, 4, 0, 0, 1, 0, 255}, 7);
    /* Sname has no end option. */
    assert_false(dhcp_parse(&dhcp, buf, sizeof(buf)));
    buf[DHCP_SNAME] = 255;
    assert_true(dhcp_parse(&dhcp, buf, sizeof(buf)));
    assert_int_equal(dhcp.lease_s, 256);
    /* An option must not continue in the next field. */
    buf[DHCP_SNAME] = 250;
    buf[DHCP_SNAME + 1] = 63;
    assert_false(dhcp_parse(&dhcp, buf, sizeof(buf)));
    buf[DHCP_OPTIONS + 5] = 1; /* only file has options */
    assert_true(dhcp_parse(&dhcp, buf, sizeof(buf)));
    buf[DHCP_OPTIONS + 5] = 0;
    assert_false(dhcp_parse(&dhcp, buf, sizeof(buf)));
    buf[DHCP_OPTIONS + 5] = 4;
    assert_false(dhcp_parse(&dhcp, buf, sizeof(buf)));
}

static void test_dhcp_parse_refuses_invalid_headers(void **state)
{
    static const struct {
        size_t at;
        uint8_t value;
    } changes[] = {
        {DHCP_OP, 0},      {DHCP_OP, 3},          {DHCP_HTYPE, 6},
        {DHCP_HLEN, 16},   {DHCP_COOKIE, 0},      {DHCP_COOKIE + 3, 0},
        {DHCP_OPTIONS, 0}, {DHCP_OPTIONS + 2, 0}, {DHCP_OPTIONS + 2, 9},
    };
    struct dhcp dhcp;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(changes); i++) {
        uint8_t buf[sizeof(dhcp_ack)];

        memcpy(buf, dhcp_ack, sizeof(buf));
        buf[changes[i].at] = changes[i].value;
        assert_false(dhcp_parse(&dhcp, buf, sizeof(buf)));
    }
}
