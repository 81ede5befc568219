/* SPDX-License-Identifier: BSD-2-Clause */
/* IPv4, IPv6, UDP, and the Internet checksum. */
#include "tests/unit/net/wire/wire_test.h"

#include "net/wire/checksum.h"
#include "net/wire/ipv4.h"
#include "net/wire/ipv6.h"
#include "net/wire/udp.h"

static void test_ip_addr_recognises_special_addresses(void **state)
{
    const struct ip_addr v4 = ip_addr_from_v4(0x0a000001);
    const struct ip_addr any4 = ip_addr_from_v4(0);
    const struct ip_addr any6 = {{0}};
    const struct ip_addr group4 = ip_addr_from_v4(0xe0000001);
    const struct ip_addr broadcast = ip_addr_from_v4(0xffffffff);
    const struct ip_addr group6 = {{0xff, 0x02, [15] = 1}};
    const struct ip_addr link6 = {{0xfe, 0x80, [15] = 1}};
    const struct ip_addr link4 = ip_addr_from_v4(0xa9fe0102);
    const struct ip_addr loop6 = {{[15] = 1}};

    (void)state;
    assert_true(ip_addr_is_v4(&v4));
    assert_false(ip_addr_is_v4(&any6));
    assert_false(ip_addr_is_v4(&loop6));
    assert_int_equal(ip_addr_to_v4(&v4), 0x0a000001);
    assert_true(ip_addr_is_unspecified(&any4));
    assert_true(ip_addr_is_unspecified(&any6));
    assert_false(ip_addr_is_unspecified(&v4));
    assert_false(ip_addr_is_unspecified(&loop6));
    assert_true(ip_addr_is_multicast(&group4));
    assert_true(ip_addr_is_multicast(&broadcast));
    assert_true(ip_addr_is_multicast(&group6));
    assert_false(ip_addr_is_multicast(&v4));
    assert_true(ip_addr_is_link_local(&link4));
    assert_true(ip_addr_is_link_local(&link6));
    assert_false(ip_addr_is_link_local(&v4));
}

static void test_ip_addr_prefix_equal_compares_the_first_bits(void **state)
{
    const struct ip_addr a = ip_addr_from_v4(0x0a0000ff);
    const struct ip_addr b = ip_addr_from_v4(0x0a000080);

    (void)state;
    for (unsigned bits = 0; bits <= 128; bits++) {
        assert_int_equal(ip_addr_prefix_equal(&a, &b, bits), bits <= 121);
    }
}

/* RFC 1071 section 3: the worked example. */
static void test_checksum_matches_the_example_of_rfc_1071(void **state)
{
    static const uint8_t example[] = {0x00, 0x01, 0xf2, 0x03,
                                      0xf4, 0xf5, 0xf6, 0xf7};

    (void)state;
    assert_int_equal(checksum_add(0, example, sizeof(example)), 0xddf2);
    for (size_t cut = 0; cut <= sizeof(example); cut += 2) {
        uint32_t sum = checksum_add(0, example, cut);

        sum = checksum_add(sum, example + cut, sizeof(example) - cut);
        assert_int_equal(sum, 0xddf2);
    }
    assert_int_equal(checksum_add(0, example, 7), 0xddf2 - 0xf7);
}

static void test_ipv4_is_parsed_and_emitted(void **state)
{
    DIRTY(out, IPV4_LEN);
    struct ipv4 ip;

    (void)state;
    assert_true(ipv4_parse(&ip, ipv4_udp, sizeof(ipv4_udp)));
    assert_int_equal(ip_addr_to_v4(&ip.src), 0x0a000001);
    assert_int_equal(ip_addr_to_v4(&ip.dst), 0x0a000002);
    assert_int_equal(ip.total_len_bytes, sizeof(ipv4_udp));
    assert_int_equal(ip.id, 0x1234);
    assert_int_equal(ip.fragment_offset_bytes, 0);
    assert_int_equal(ip.header_len_bytes, IPV4_LEN);
    assert_int_equal(ip.tos, 0x69);
    assert_int_equal(ip.ttl, 63);
    assert_int_equal(ip.protocol, IP_PROTOCOL_UDP);
    assert_true(ip.dont_fragment);
    assert_false(ip.more_fragments);
    ipv4_emit(&ip, out);
    assert_memory_equal(out, ipv4_udp, IPV4_LEN);
}

static void test_ipv4_fragment_fields_are_emitted_and_parsed(void **state)
{
    const struct ipv4 sent = {.src = ip_addr_from_v4(1),
                              .dst = ip_addr_from_v4(2),
                              .total_len_bytes = 20,
                              .fragment_offset_bytes = 0x1fff * 8,
                              .more_fragments = true};
    DIRTY(out, IPV4_LEN);
    struct ipv4 ip;

    (void)state;
    ipv4_emit(&sent, out);
    assert_int_equal(out[IPV4_FRAGMENT], 0x3f);
    assert_int_equal(out[IPV4_FRAGMENT + 1], 0xff);
    assert_true(ipv4_parse(&ip, out, sizeof(out)));
    assert_true(ip.more_fragments);
    assert_false(ip.dont_fragment);
    assert_int_equal(ip.fragment_offset_bytes, 0x1fff * 8);
}

static void test_ipv4_parse_refuses_every_truncation(void **state)
{
    struct ipv4 ip;

    (void)state;
    ASSERT_TRUNCATIONS_REFUSED(ipv4_parse, &ip, ipv4_udp, sizeof(ipv4_udp));
}

static void test_ipv4_parse_refuses_every_flipped_header_bit(void **state)
{
    struct ipv4 ip;

    (void)state;
    for (size_t bit = 0; bit < IPV4_LEN * 8; bit++) {
        uint8_t buf[sizeof(ipv4_udp)];

        memcpy(buf, ipv4_udp, sizeof(buf));
        buf[bit / 8] ^= (uint8_t)(1 << bit % 8);
        assert_false(ipv4_parse(&ip, buf, sizeof(buf)));
    }
}

static void fix_ipv4_checksum(uint8_t *buf, size_t header_len)
{
    buf[IPV4_CHECKSUM] = buf[IPV4_CHECKSUM + 1] = 0;
    uint16_t sum = checksum_finish(checksum_add(0, buf, header_len));
    buf[IPV4_CHECKSUM] = (uint8_t)(sum >> 8);
    buf[IPV4_CHECKSUM + 1] = (uint8_t)sum;
}

static void test_ipv4_lengths_must_agree(void **state)
{
    static const struct {
        uint8_t version_ihl;
        uint8_t total_len;
        bool good;
    } rows[] = {
        {0x45, 24, true},  {0x45, 20, true},  {0x46, 24, true},
        {0x45, 19, false}, {0x45, 25, false}, {0x46, 20, false},
        {0x44, 24, false}, {0x40, 24, false}, {0x4f, 24, false},
        {0x65, 24, false},
    };
    struct ipv4 ip;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        uint8_t buf[24] = {rows[i].version_ihl, 0, 0, rows[i].total_len};

        fix_ipv4_checksum(buf, MIN((rows[i].version_ihl & 0xfu) * 4, 24u));
        assert_int_equal(ipv4_parse(&ip, buf, sizeof(buf)), rows[i].good);
    }
}

static void test_ipv6_is_parsed_and_emitted(void **state)
{
    DIRTY(out, IPV6_LEN);
    struct ipv6 ip;

    (void)state;
    assert_true(ipv6_parse(&ip, ipv6_udp, sizeof(ipv6_udp)));
    assert_memory_equal(ip.src.bytes, ipv6_udp + 8, 16);
    assert_memory_equal(ip.dst.bytes, ipv6_udp + 24, 16);
    assert_int_equal(ip.flow_label, 0xabcde);
    assert_int_equal(ip.traffic_class, 0x69);
    assert_int_equal(ip.payload_len_bytes, 21);
    assert_int_equal(ip.next_header, IP_PROTOCOL_UDP);
    assert_int_equal(ip.hop_limit, 63);
    ipv6_emit(&ip, out);
    assert_memory_equal(out, ipv6_udp, IPV6_LEN);
}

static void test_ipv6_parse_refuses_every_truncation(void **state)
{
    struct ipv6 ip;

    (void)state;
    ASSERT_TRUNCATIONS_REFUSED(ipv6_parse, &ip, ipv6_udp, sizeof(ipv6_udp));
}

static void test_ipv6_parse_refuses_mapped_addresses_and_other_versions(
    void **state)
{
    const struct ip_addr mapped = ip_addr_from_v4(0x0a000001);
    uint8_t buf[sizeof(ipv6_udp)];
    struct ipv6 ip;

    (void)state;
    memcpy(buf, ipv6_udp, sizeof(buf));
    memcpy(buf + IPV6_SRC, mapped.bytes, 16);
    assert_false(ipv6_parse(&ip, buf, sizeof(buf)));
    memcpy(buf, ipv6_udp, sizeof(buf));
    memcpy(buf + IPV6_DST, mapped.bytes, 16);
    assert_false(ipv6_parse(&ip, buf, sizeof(buf)));
    memcpy(buf, ipv6_udp, sizeof(buf));
    buf[IPV6_VERSION] = 0x46;
    assert_false(ipv6_parse(&ip, buf, sizeof(buf)));
}

static void check_udp(const uint8_t *udp_buf, size_t len,
                      const struct ip_addr *src, const struct ip_addr *dst)
{
    uint8_t out[64];
    struct udp udp;

    memset(out, 0xa5, sizeof(out));
    assert_true(udp_parse(&udp, udp_buf, len));
    assert_int_equal(udp.src_port, 123);
    assert_int_equal(udp.dst_port, UDP_PORT_ROCE);
    assert_int_equal(udp.length_bytes, 21);
    assert_int_equal(udp_checksum(src, dst, udp_buf, len), 0xffff);
    memcpy(out, udp_buf, len);
    udp.checksum = 0;
    udp_emit(&udp, out);
    udp.checksum = udp_checksum(src, dst, out, len);
    udp_emit(&udp, out);
    assert_memory_equal(out, udp_buf, len);
    ASSERT_TRUNCATIONS_REFUSED(udp_parse, &udp, udp_buf, len);
    out[12] ^= 1;
    assert_int_not_equal(udp_checksum(src, dst, out, len), 0xffff);
}

static void test_udp_is_parsed_and_emitted_over_ipv4_and_ipv6(void **state)
{
    struct ipv4 ip4;
    struct ipv6 ip6;

    (void)state;
    assert_true(ipv4_parse(&ip4, ipv4_udp, sizeof(ipv4_udp)));
    check_udp(ipv4_udp + IPV4_LEN, 21, &ip4.src, &ip4.dst);
    assert_true(ipv6_parse(&ip6, ipv6_udp, sizeof(ipv6_udp)));
    check_udp(ipv6_udp + IPV6_LEN, 21, &ip6.src, &ip6.dst);
}

static void test_udp_length_below_the_header_is_refused(void **state)
{
    uint8_t buf[UDP_LEN] = {0};
    struct udp udp;

    (void)state;
    for (uint8_t len = 0; len < UDP_LEN; len++) {
        buf[UDP_LENGTH + 1] = len;
        assert_false(udp_parse(&udp, buf, sizeof(buf)));
    }
    buf[UDP_LENGTH + 1] = UDP_LEN;
    assert_true(udp_parse(&udp, buf, sizeof(buf)));
}

/* 0 means "no checksum", so a sum of 0 is sent as ffffh. */
static void test_udp_checksum_is_never_zero(void **state)
{
    const struct ip_addr zero = ip_addr_from_v4(0);
    uint8_t buf[10] = {[8] = 0xff, [9] = 0xff - 17 - 10};

    (void)state;
    assert_int_equal(udp_checksum(&zero, &zero, buf, sizeof(buf)), 0xffff);
}
