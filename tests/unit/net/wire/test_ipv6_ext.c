/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/net/wire/wire_test.h"

#include "net/wire/ipv6_ext.h"

/* scapy has made both. */

/* Offset 1448, more fragments follow. */
static const uint8_t fragment[] = {
    0x3a, 0x00, 0x05, 0xa9, 0x11, 0x22, 0x33, 0x44,
};

/* A router alert option and padding. */
static const uint8_t hop_by_hop[] = {
    0x3a, 0x00, 0x05, 0x02, 0x00, 0x00, 0x01, 0x00,
};

static void test_fragment_header_is_parsed_and_emitted(void **state)
{
    DIRTY(out, IPV6_FRAGMENT_LEN);
    struct ipv6_fragment f;

    (void)state;
    assert_true(ipv6_fragment_parse(&f, fragment, sizeof(fragment)));
    assert_int_equal(f.id, 0x11223344);
    assert_int_equal(f.offset_bytes, 1448);
    assert_int_equal(f.next_header, 58);
    assert_true(f.more_fragments);
    ipv6_fragment_emit(&f, out);
    assert_memory_equal(out, fragment, sizeof(fragment));
    f.more_fragments = false;
    f.offset_bytes = 0xfff8;
    ipv6_fragment_emit(&f, out);
    assert_true(ipv6_fragment_parse(&f, out, sizeof(out)));
    assert_false(f.more_fragments);
    assert_int_equal(f.offset_bytes, 0xfff8);
}

static void test_fragment_header_parse_refuses_every_truncation(void **state)
{
    struct ipv6_fragment f;

    (void)state;
    ASSERT_TRUNCATIONS_REFUSED(ipv6_fragment_parse, &f, fragment,
                               sizeof(fragment));
}

static void test_reserved_bits_of_a_fragment_header_are_ignored(void **state)
{
    uint8_t buf[sizeof(fragment)];
    struct ipv6_fragment f;

    (void)state;
    memcpy(buf, fragment, sizeof(buf));
    buf[IPV6_EXT_HDR_LEN] = 0xff;
    buf[IPV6_FRAGMENT_OFFSET + 1] |= 6;
    assert_true(ipv6_fragment_parse(&f, buf, sizeof(buf)));
    assert_int_equal(f.offset_bytes, 1448);
}

static void test_a_truncated_header_has_length_0(void **state)
{
    uint8_t buf[2048] = {0};

    (void)state;
    assert_int_equal(ipv6_ext_len(hop_by_hop, sizeof(hop_by_hop)), 8);
    for (size_t len = 0; len < sizeof(hop_by_hop); len++) {
        assert_int_equal(ipv6_ext_len(hop_by_hop, len), 0);
    }
    buf[IPV6_EXT_HDR_LEN] = 255;
    assert_int_equal(ipv6_ext_len(buf, 2048), 2048);
    assert_int_equal(ipv6_ext_len(buf, 2047), 0);
}

static enum ipv6_options check_options(const uint8_t *options, size_t len,
                                       size_t *offset)
{
    uint8_t *buf = malloc(IPV6_EXT_OPTIONS + len); /* ASan guards its end */
    enum ipv6_options result;

    assert_non_null(buf);
    memset(buf, 0, IPV6_EXT_OPTIONS);
    memcpy(buf + IPV6_EXT_OPTIONS, options, len);
    result = ipv6_options_check(buf, IPV6_EXT_OPTIONS + len, offset);
    free(buf);
    return result;
}

/* RFC 8200 section 4.2: the two highest bits of the type say how to react. */
static void test_options_are_judged_by_their_type(void **state)
{
    static const struct {
        uint8_t options[6];
        enum ipv6_options result;
        size_t offset;
    } cases[] = {
        {{0, 0, 0, 0, 0, 0}, IPV6_OPTIONS_SKIP, 7},
        {{1, 4, 0, 0, 0, 0}, IPV6_OPTIONS_SKIP, 2},
        {{5, 2, 0, 0, 1, 0}, IPV6_OPTIONS_SKIP, 6},
        {{0x3e, 1, 9, 0, 0x41, 0}, IPV6_OPTIONS_DISCARD, 6},
        {{1, 0, 0x81, 2, 0, 0}, IPV6_OPTIONS_REPORT, 4},
        {{0xc1, 4, 0, 0, 0, 0}, IPV6_OPTIONS_REPORT_UNICAST, 2},
        {{1, 5, 0, 0, 0, 0}, IPV6_OPTIONS_MALFORMED, 2},
        {{1, 2, 0, 0, 0, 1}, IPV6_OPTIONS_MALFORMED, 7},
        {{0x81, 5, 0, 0, 0, 0}, IPV6_OPTIONS_MALFORMED, 2},
    };
    size_t offset;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        assert_int_equal(
            check_options(cases[i].options, sizeof(cases[i].options), &offset),
            cases[i].result);
        assert_int_equal(offset, cases[i].offset);
    }
    assert_int_equal(
        ipv6_options_check(hop_by_hop, sizeof(hop_by_hop), &offset),
        IPV6_OPTIONS_SKIP); /* a host ignores a router alert */
}
