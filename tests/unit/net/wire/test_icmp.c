/* SPDX-License-Identifier: BSD-2-Clause */
/* ICMP, ICMPv6 and neighbour discovery. */
#include "tests/unit/net/wire/wire_test.h"

#include "net/wire/icmp.h"
#include "net/wire/nd.h"

/* The addresses of the ICMPv6 messages that golden.py makes. */
static const struct ip_addr v6_src = {
    {0xfe, 0x80, [8] = 0x50, 0x54, 0x00, 0xff, 0xfe, 0x12, 0x34, 0x56}};
static const struct ip_addr v6_dst = {{0x20, 0x01, 0x0d, 0xb8, [15] = 7}};
static const struct ip_addr all_nodes = {{0xff, 0x02, [15] = 1}};
static const struct ip_addr all_routers = {{0xff, 0x02, [15] = 2}};
static const struct mac_addr mac_b = {{0x52, 0x54, 0x00, 0x12, 0x34, 0x56}};

static bool icmpv6_parse_cut(struct icmp *icmp, const uint8_t *buf, size_t len)
{
    return icmpv6_parse(icmp, &v6_src, &v6_dst, buf, len);
}

static void test_icmp_echo_is_parsed_and_emitted(void **state)
{
    DIRTY(out, sizeof(icmp_echo));
    struct icmp icmp;

    (void)state;
    assert_true(icmp_parse(&icmp, icmp_echo, sizeof(icmp_echo)));
    assert_int_equal(icmp.type, ICMP_ECHO_REQUEST);
    assert_int_equal(icmp.code, 0);
    assert_int_equal(icmp.rest, 0x12345678);
    memcpy(out + ICMP_LEN, icmp_echo + ICMP_LEN, sizeof(out) - ICMP_LEN);
    icmp_emit(&icmp, out, sizeof(out));
    assert_memory_equal(out, icmp_echo, sizeof(out));
    ASSERT_TRUNCATIONS_REFUSED(icmp_parse, &icmp, icmp_echo, ICMP_LEN);
}

static void test_icmpv6_echo_is_parsed_and_emitted(void **state)
{
    DIRTY(out, sizeof(icmpv6_echo));
    struct icmp icmp;

    (void)state;
    assert_true(icmpv6_parse(&icmp, &v6_src, &v6_dst, icmpv6_echo,
                             sizeof(icmpv6_echo)));
    assert_int_equal(icmp.type, ICMPV6_ECHO_REQUEST);
    assert_int_equal(icmp.rest, 0x12345678);
    memcpy(out + ICMP_LEN, icmpv6_echo + ICMP_LEN, sizeof(out) - ICMP_LEN);
    icmpv6_emit(&icmp, &v6_src, &v6_dst, out, sizeof(out));
    assert_memory_equal(out, icmpv6_echo, sizeof(out));
    ASSERT_TRUNCATIONS_REFUSED(icmpv6_parse_cut, &icmp, icmpv6_echo, ICMP_LEN);
}

static void test_icmp_parse_refuses_every_flipped_bit(void **state)
{
    struct icmp icmp;

    (void)state;
    for (size_t bit = 0; bit < sizeof(icmp_echo) * 8; bit++) {
        uint8_t buf[sizeof(icmp_echo)];

        memcpy(buf, icmp_echo, sizeof(buf));
        buf[bit / 8] ^= (uint8_t)(1 << bit % 8);
        assert_false(icmp_parse(&icmp, buf, sizeof(buf)));
        memcpy(buf, icmpv6_echo, sizeof(buf));
        buf[bit / 8] ^= (uint8_t)(1 << bit % 8);
        assert_false(icmpv6_parse_cut(&icmp, buf, sizeof(buf)));
    }
    assert_false(icmpv6_parse(&icmp, &v6_src, &all_nodes, icmpv6_echo,
                              sizeof(icmpv6_echo)));
}

static void test_nd_neighbor_solicit_is_parsed_and_emitted(void **state)
{
    DIRTY(out, ND_NEIGHBOR_MAX_LEN);
    struct nd_neighbor nd;

    (void)state;
    assert_true(nd_neighbor_parse(&nd, nd_ns, sizeof(nd_ns)));
    assert_int_equal(nd.type, ND_NEIGHBOR_SOLICIT);
    assert_true(ip_addr_equal(&nd.target, &v6_dst));
    assert_true(nd.has_lladdr);
    assert_true(mac_addr_equal(&nd.lladdr, &mac_b));
    assert_int_equal(nd_neighbor_emit(&nd, &v6_src, &v6_dst, out),
                     sizeof(nd_ns));
    assert_memory_equal(out, nd_ns, sizeof(nd_ns));
}

static void test_nd_neighbor_advert_is_parsed_and_emitted(void **state)
{
    DIRTY(out, ND_NEIGHBOR_MAX_LEN);
    struct nd_neighbor nd;

    (void)state;
    assert_true(nd_neighbor_parse(&nd, nd_na, sizeof(nd_na)));
    assert_int_equal(nd.type, ND_NEIGHBOR_ADVERT);
    assert_true(nd.router);
    assert_false(nd.solicited);
    assert_true(nd.override);
    assert_true(nd.has_lladdr);
    assert_int_equal(nd_neighbor_emit(&nd, &v6_src, &v6_dst, out),
                     sizeof(nd_na));
    assert_memory_equal(out, nd_na, sizeof(nd_na));
}

static void test_nd_router_solicit_is_parsed_and_emitted(void **state)
{
    DIRTY(out, ND_RS_MAX_LEN);
    struct nd_router_solicit rs;

    (void)state;
    assert_true(nd_router_solicit_parse(&rs, nd_rs, sizeof(nd_rs)));
    assert_true(rs.has_lladdr);
    assert_true(mac_addr_equal(&rs.lladdr, &mac_b));
    assert_int_equal(nd_router_solicit_emit(&rs, &v6_src, &all_routers, out),
                     sizeof(nd_rs));
    assert_memory_equal(out, nd_rs, sizeof(nd_rs));
}

static void test_nd_router_advert_is_parsed(void **state)
{
    struct nd_router_advert ra;

    (void)state;
    assert_true(nd_router_advert_parse(&ra, nd_ra, sizeof(nd_ra)));
    assert_int_equal(ra.hop_limit, 64);
    assert_true(ra.managed);
    assert_false(ra.other);
    assert_int_equal(ra.router_lifetime_s, 1800);
    assert_int_equal(ra.reachable_ms, 30000);
    assert_int_equal(ra.retrans_ms, 1000);
    assert_int_equal(ra.mtu_bytes, 9000);
    assert_true(ra.has_lladdr);
    assert_int_equal(ra.prefix_count, 1);
    assert_int_equal(ra.prefixes[0].prefix_bits, 64);
    assert_true(ra.prefixes[0].on_link);
    assert_false(ra.prefixes[0].autonomous);
    assert_int_equal(ra.prefixes[0].valid_s, 86400);
    assert_int_equal(ra.prefixes[0].preferred_s, 14400);
}

static void test_nd_router_advert_keeps_as_many_prefixes_as_fit(void **state)
{
    enum { PREFIX_AT = 32, PREFIX_LEN = 32, COUNT = ND_RA_MAX_PREFIXES + 3 };
    uint8_t buf[PREFIX_AT + COUNT * PREFIX_LEN];
    struct nd_router_advert ra;

    (void)state;
    memcpy(buf, nd_ra, PREFIX_AT);
    for (size_t i = 0; i < COUNT; i++) {
        memcpy(buf + PREFIX_AT + i * PREFIX_LEN, nd_ra + PREFIX_AT, PREFIX_LEN);
    }
    assert_true(nd_router_advert_parse(&ra, buf, sizeof(buf)));
    assert_int_equal(ra.prefix_count, ND_RA_MAX_PREFIXES);
}

/* A message may end before an option, but not inside one. */
static void test_nd_options_are_whole_or_refused(void **state)
{
    union {
        struct nd_neighbor neighbor;
        struct nd_router_solicit rs;
        struct nd_router_advert ra;
    } nd;

    (void)state;
    for (size_t len = 0; len < sizeof(nd_ra); len++) {
        bool whole = len == 16 || len == 24 || len == 32;
        uint8_t *copy = malloc(len + 1);

        memcpy(copy, nd_ra, len);
        assert_int_equal(nd_router_advert_parse(&nd.ra, copy, len), whole);
        memcpy(copy, nd_ns, MIN(len, sizeof(nd_ns)));
        if (len < sizeof(nd_ns)) {
            assert_int_equal(nd_neighbor_parse(&nd.neighbor, copy, len),
                             len == ND_NEIGHBOR_OPTIONS);
        }
        memcpy(copy, nd_rs, MIN(len, sizeof(nd_rs)));
        if (len < sizeof(nd_rs)) {
            assert_int_equal(nd_router_solicit_parse(&nd.rs, copy, len),
                             len == ND_RS_OPTIONS);
        }
        free(copy);
    }
}

static void test_nd_parse_refuses_hostile_options_and_targets(void **state)
{
    static const struct {
        size_t offset;
        uint8_t value;
    } rows[] = {
        {ICMP_CODE, 1},
        {ICMP_TYPE, ND_ROUTER_ADVERT},
        {ND_TARGET, 0xff},                        /* multicast */
        {ND_NEIGHBOR_OPTIONS + ND_OPT_LENGTH, 0}, /* would loop for ever */
        {ND_NEIGHBOR_OPTIONS + ND_OPT_LENGTH, 2}, /* exceeds the message */
        {ND_NEIGHBOR_OPTIONS + ND_OPT_LENGTH, 0xff},
    };
    struct nd_neighbor nd;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        uint8_t buf[sizeof(nd_ns)];

        memcpy(buf, nd_ns, sizeof(buf));
        buf[rows[i].offset] = rows[i].value;
        assert_false(nd_neighbor_parse(&nd, buf, sizeof(buf)));
    }
}

static void test_nd_parse_refuses_a_mapped_target(void **state)
{
    const struct ip_addr mapped = ip_addr_from_v4(0x0a000001);
    uint8_t buf[sizeof(nd_ns)];
    struct nd_neighbor nd;

    (void)state;
    memcpy(buf, nd_ns, sizeof(buf));
    memcpy(buf + ND_TARGET, mapped.bytes, 16);
    assert_false(nd_neighbor_parse(&nd, buf, sizeof(buf)));
}

static void test_nd_derives_the_expected_addresses(void **state)
{
    /* RFC 4291 section 2.7.1: 4037::01:800:200e:8c6c. */
    static const struct ip_addr ip = {
        {0x40, 0x37, [8] = 0x00, 0x01, 0x08, 0x00, 0x20, 0x0e, 0x8c, 0x6c}};
    static const struct ip_addr node = {
        {0xff, 0x02, [11] = 0x01, 0xff, 0x0e, 0x8c, 0x6c}};
    static const struct mac_addr group = {{0x33, 0x33, 0xff, 0x0e, 0x8c, 0x6c}};
    const struct ip_addr got = nd_solicited_node(&ip);
    const struct mac_addr mac = nd_multicast_mac(&got);
    const struct ip_addr link = nd_link_local(&mac_b);

    (void)state;
    assert_true(ip_addr_equal(&got, &node));
    assert_true(mac_addr_equal(&mac, &group));
    assert_true(ip_addr_equal(&link, &v6_src)); /* as Linux derives it */
}
