/* SPDX-License-Identifier: BSD-2-Clause */
/* Compares with the C library, for every possible run of zero groups. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include <arpa/inet.h>

#include "firmware/text/ip_text.h"

static void expect_same(const struct ip_addr *ip)
{
    struct ip_text text = ip_text(ip);
    char expected[INET6_ADDRSTRLEN];

    assert_non_null(inet_ntop(AF_INET6, ip->bytes, expected, sizeof(expected)));
    assert_string_equal(text.text, expected);
}

static void test_every_pattern_of_zero_groups(void **state)
{
    (void)state;
    for (unsigned int pattern = 0; pattern < 256; pattern++) {
        struct ip_addr ip = {0};

        for (unsigned int i = 0; i < 8; i++) {
            if (pattern & 1u << i) {
                ip.bytes[2 * i] = (uint8_t)(i % 3 == 0 ? 0xfe : 0);
                ip.bytes[2 * i + 1] = (uint8_t)(0xa + i);
            }
        }
        /* The C library writes the deprecated embedded forms with dots. */
        if ((pattern & 0x3f) != 0) {
            expect_same(&ip);
        }
    }
}

static void test_all_zeroes_one_and_all_ones(void **state)
{
    struct ip_addr ip = {0};

    (void)state;
    assert_string_equal(ip_text(&ip).text, "::");
    ip.bytes[15] = 1;
    assert_string_equal(ip_text(&ip).text, "::1");
    memset(ip.bytes, 0xff, sizeof(ip.bytes));
    assert_string_equal(ip_text(&ip).text,
                        "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff");
}

static void test_ipv4_addresses_have_dots(void **state)
{
    struct ip_addr low = ip_addr_from_v4(0x0a000001);
    struct ip_addr high = ip_addr_from_v4(0xfffefdfc);

    (void)state;
    assert_string_equal(ip_text(&low).text, "10.0.0.1");
    assert_string_equal(ip_text(&high).text, "255.254.253.252");
}

/* What the C library accepts, except IPv4 addresses embedded in IPv6 ones. */
static bool library_parses(const char *text, uint8_t *bytes)
{
    if (inet_pton(AF_INET, text, bytes + 12) == 1) {
        memcpy(bytes, ip_addr_from_v4(0).bytes, 12);
        return true;
    }
    return (strchr(text, ':') == NULL || strchr(text, '.') == NULL) &&
           inet_pton(AF_INET6, text, bytes) == 1;
}

static void expect_parsed(const char *text)
{
    struct ip_addr ip;
    uint8_t bytes[16] = {0};
    bool is_address = library_parses(text, bytes);

    if (ip_text_parse(&ip, text, strlen(text)) != is_address ||
        (is_address && memcmp(ip.bytes, bytes, 16) != 0)) {
        fail_msg("%s", text);
    }
}

static void test_addresses_are_parsed_as_the_library_does(void **state)
{
    static const char *const texts[] = {
        "",
        "0.0.0.0",
        "10.0.0.1",
        "255.255.255.255",
        "256.0.0.1",
        "1.2.3",
        "1.2.3.4.5",
        "1.2.3.",
        ".1.2.3",
        "1..2.3",
        "01.2.3.4",
        "1.2.3.04",
        "1.2.3.4 ",
        " 1.2.3.4",
        "-1.2.3.4",
        "1.2.3.0000000004",
        "::",
        "::1",
        "1::",
        "1::2",
        ":",
        ":::",
        "1:::2",
        "1::2::3",
        "1:2:3:4:5:6:7:8",
        "1:2:3:4:5:6:7",
        "1:2:3:4:5:6:7:8:9",
        "1:2:3:4:5:6:7::",
        "::2:3:4:5:6:7:8",
        "1:2:3:4:5:6:7:8::",
        "::1:2:3:4:5:6:7:8",
        "1:2:3::4:5:6:7:8",
        "fe80::ABCD:ef01",
        "12345::",
        "fe80::12345",
        "g::1",
        "1:2:",
        ":1:2",
        "fd00::1%eth0",
        "::ffff:1.2.3.4",
        "::1.2.3.4",
        "1:",
        "x",
        "1",
        "1.2.3.4:80",
        "ff02::1:ff00:0",
    };

    (void)state;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        expect_parsed(texts[i]);
    }
}

static void test_formatted_addresses_are_parsed_back(void **state)
{
    (void)state;
    for (unsigned int pattern = 0; pattern < 256; pattern++) {
        struct ip_addr ip = {0}, back;

        for (unsigned int i = 0; i < 8; i++) {
            ip.bytes[2 * i] = pattern & 1u << i ? 0x10 : 0;
        }
        assert_true(
            ip_text_parse(&back, ip_text(&ip).text, strlen(ip_text(&ip).text)));
        assert_true(ip_addr_equal(&ip, &back));
    }
}

static void test_only_the_given_characters_count(void **state)
{
    struct ip_addr ip;

    (void)state;
    assert_true(ip_text_parse(&ip, "10.0.0.12/24", 9));
    assert_int_equal(ip_addr_to_v4(&ip), 0x0a00000c);
    assert_true(ip_text_parse(&ip, "fd00::1234", 7));
    assert_int_equal(ip.bytes[15], 0x1);
    assert_false(ip_text_parse(&ip, "::ffff:a00:1", 12));
}
