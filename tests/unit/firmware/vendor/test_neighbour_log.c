/* SPDX-License-Identifier: BSD-2-Clause */
/* Log page D0h, byte by byte: docs/nvme.md, "Log pages of our own". */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "firmware/vendor/neighbour_log.h"

enum { NOW_US = 12345 };

static struct lldp_agent agent;
static struct lldp neighbour;
static unsigned int neighbour_port, neighbour_place;
static uint32_t ttl_left_s;

bool lldp_neighbour_read(const struct lldp_agent *from, uint8_t port,
                         size_t place, uint64_t now_us, struct lldp *lldp,
                         uint32_t *left_s)
{
    assert_ptr_equal(from, &agent);
    assert_int_equal(now_us, NOW_US);
    assert_true(port < NET_PORTS && place < LLDP_NEIGHBOURS);
    *lldp = neighbour;
    *left_s = ttl_left_s;
    return port == neighbour_port && place == neighbour_place;
}

static struct lldp_text text_of(const char *text)
{
    return (struct lldp_text){(const uint8_t *)text, (uint16_t)strlen(text)};
}

/* Build a part into a dirty buffer. */
static const uint8_t *build_part(uint32_t part)
{
    static uint8_t page[NEIGHBOUR_LOG_PART + 1];

    memset(page, 0xa5, sizeof(page));
    neighbour_log_build(&agent, NOW_US, part, page);
    assert_int_equal(page[NEIGHBOUR_LOG_PART], 0xa5);
    return page;
}

static void expect_zeroes(const uint8_t *page, size_t from, size_t to)
{
    for (size_t i = from; i < to; i++) {
        assert_int_equal(page[i], 0);
    }
}

static void test_the_header_has_the_counters_of_both_ports(void **state)
{
    static const uint8_t head[] = {1, 0, 16, 0, 0, 2};
    const uint8_t *page;

    (void)state;
    for (unsigned int port = 0; port < 2; port++) {
        for (unsigned int i = 0; i < LLDP_COUNTERS; i++) {
            agent.ports[port].counters[i] =
                UINT64_C(0x0807060504030201) + 16 * port + i;
        }
    }
    page = build_part(0);
    assert_memory_equal(page, head, sizeof(head));
    expect_zeroes(page, sizeof(head), 16);
    for (unsigned int port = 0; port < 2; port++) {
        for (unsigned int i = 0; i < 6; i++) {
            const uint8_t *at = page + 16 + 48 * (size_t)port + 8 * (size_t)i;

            assert_int_equal(at[0], 1 + 16 * port + i);
            assert_int_equal(at[1], 2);
            assert_int_equal(at[7], 8);
        }
    }
    expect_zeroes(page, 112, NEIGHBOUR_LOG_PART);
}

static void test_each_fact_of_a_neighbour_has_its_place(void **state)
{
    static const uint8_t head[] = {
        1,    1,    0x2c, 0x01, 4,    3,    7,    4,    /* used to port ID */
        0x34, 0x12, 0x30, 0x10, 0x05, 0x00, 0xf2, 0x05, /* to frame size */
        0x5c, 0x00, 3,    2,                            /* to addresses */
    };
    const uint8_t *page;

    (void)state;
    neighbour = (struct lldp){
        .chassis = {.subtype = 4, .value = text_of("abc")},
        .port = {.subtype = 7, .value = text_of("eth0")},
        .port_description = text_of("a port"),
        .system_name = text_of("host"),
        .system_description = text_of("Linux"),
        .capabilities = 0x1234,
        .capabilities_enabled = 0x1030,
        .pvid = 5,
        .max_frame = 1522,
        .mau_type = 0x5c,
        .autoneg = 3,
        .management_count = 2,
    };
    neighbour.management[1].ip.bytes[15] = 9;
    neighbour_port = 1;
    neighbour_place = 2;
    ttl_left_s = 300;
    page = build_part(1 + LLDP_NEIGHBOURS + 2);
    assert_memory_equal(page, head, sizeof(head));
    expect_zeroes(page, sizeof(head), 24);
    assert_memory_equal(page + 24, "abc\0", 4);
    assert_memory_equal(page + 88, "eth0\0", 5);
    assert_memory_equal(page + 152, "a port\0", 7);
    assert_memory_equal(page + 216, "host\0", 5);
    assert_memory_equal(page + 280, "Linux\0", 6);
    expect_zeroes(page, 286, 440 + 31);
    assert_int_equal(page[440 + 31], 9);
    expect_zeroes(page, 472, NEIGHBOUR_LOG_PART);
}

static void test_texts_that_are_too_long_are_cut(void **state)
{
    static char text[300];
    const uint8_t *page;

    (void)state;
    memset(text, 'x', sizeof(text) - 1);
    neighbour = (struct lldp){
        .chassis = {.value = text_of(text)},
        .port = {.value = text_of(text)},
        .port_description = text_of(text),
        .system_name = text_of(text),
        .system_description = text_of(text),
    };
    neighbour_port = neighbour_place = 0;
    page = build_part(1);
    assert_int_equal(page[5], 64);
    assert_int_equal(page[7], 64);
    for (unsigned int i = 24; i < 440; i++) {
        assert_int_equal(page[i], 'x');
    }
    expect_zeroes(page, 440, NEIGHBOUR_LOG_PART);
}

static void test_a_place_without_a_neighbour_is_zero(void **state)
{
    (void)state;
    neighbour_port = NET_PORTS;
    for (uint32_t part = 1; part <= NEIGHBOUR_LOG_PLACES + 1; part++) {
        expect_zeroes(build_part(part), 0, NEIGHBOUR_LOG_PART);
    }
}
