/* SPDX-License-Identifier: BSD-2-Clause */
/* Against the C library, for every run of zero groups there is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include <arpa/inet.h>

#include "firmware/app/ip_text.h"

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
        /* The C library writes the old embedded forms with dots. */
        if ((pattern & 0x3f) != 0) {
            expect_same(&ip);
        }
    }
}

static void test_the_ends(void **state)
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

static void test_v4_has_dots(void **state)
{
    struct ip_addr low = ip_addr_from_v4(0x0a000001);
    struct ip_addr high = ip_addr_from_v4(0xfffefdfc);

    (void)state;
    assert_string_equal(ip_text(&low).text, "10.0.0.1");
    assert_string_equal(ip_text(&high).text, "255.254.253.252");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_pattern_of_zero_groups),
        cmocka_unit_test(test_the_ends),
        cmocka_unit_test(test_v4_has_dots),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
