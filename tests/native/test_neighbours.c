/* SPDX-License-Identifier: BSD-2-Clause */
/* What LLDP hears of the other end, as the console tells it. */
#include "bed_fixture.h"

#include <string.h>

#include "tests/unit/net/wire/golden_services.h"

enum { ETH_HEADER = 14, HOST_END = 1 };

static void expect(const char *line, const char *answer)
{
    const char *said = type(line);

    if (strstr(said, answer) == NULL) {
        print_message("%s", said);
        fail_msg("%s was not answered: %s", line, answer);
    }
}

/* Into the drive's port, as if the host had sent it. */
static void send_lldp(unsigned int port, const uint8_t *pdu, size_t len)
{
    static const uint8_t header[ETH_HEADER] = {0x01, 0x80, 0xc2, 0x00, 0x00,
                                               0x0e, 0x52, 0x54, 0x00, 0x12,
                                               0x34, 0x56, 0x88, 0xcc};
    struct frame_sink sink = cable_sink(&bed.cables[port], HOST_END);
    struct frame_tx frame = {
        .head_len = ETH_HEADER,
        .num_pieces = 1,
        .pieces = {{pdu, (uint32_t)len}},
    };

    memcpy(frame.head, header, sizeof(header));
    assert_int_equal(sink.send(sink.ctx, &frame, 1), 1);
    native_world_pass(&bed.world, 1000000);
}

static void test_console_tells_what_was_heard_fact_by_fact(void **state)
{
    static const char *const facts[] = {
        "port 1: neighbour 0: chassis 52:54:00:12:34:56",
        "port 1: neighbour 0: port 52:54:00:12:34:57",
        "port 1: neighbour 0: port-description eth0",
        "port 1: neighbour 0: system host",
        "port 1: neighbour 0: system-description Linux",
        "port 1: neighbour 0: address 10.0.0.1\n",
        "port 1: neighbour 0: address fe80::5054:ff:fe12:3456",
        "port 1: neighbour 0: capabilities station",
        "port 1: neighbour 0: vlan 1",
        "port 1: neighbour 0: longest-frame 1522",
        "port 1: neighbour 0: forgotten-in 120",
    };

    (void)state;
    expect("neighbours\r", "port 1: nothing heard yet");
    send_lldp(1, lldp_golden, sizeof(lldp_golden));
    for (size_t i = 0; i < ARRAY_LEN(facts); i++) {
        expect("neighbours 1\r", facts[i]);
    }
    expect("neighbours 0\r", "port 0: nothing heard yet");
    assert_null(strstr(type("neighbours 0\r"), "port 1"));
    native_disconnect(&bed.drive->machine, 1, &bed.host->machine, 1);
    native_world_pass(&bed.world, 100000000);
    expect("neighbours\r", "port 1: nothing heard: the link is down");
}

static void test_a_name_cannot_write_on_the_terminal(void **state)
{
    static const uint8_t pdu[] = {
        0x02, 0x04, 0x07, 'a',  '\033', 'c', 0x04, 0x03, 0x07, 'b',  '\n', 0x06,
        0x02, 0x00, 0x78, 0x0a, 0x04,   'x', '\r', '\n', 0x9b, 0x00, 0x00,
    };

    (void)state;
    send_lldp(0, pdu, sizeof(pdu));
    expect("neighbours 0\r", "neighbour 0: chassis a?c\n");
    expect("neighbours 0\r", "neighbour 0: port b?\n");
    expect("neighbours 0\r", "neighbour 0: system x???\n");
}

static void test_neighbours_refuses_other_ports(void **state)
{
    (void)state;
    expect("neighbours 2\r", "error: no port 2");
    expect("neighbours 0 1\r", "error: neighbours [PORT]");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_console_tells_what_was_heard_fact_by_fact),
        TEST(test_a_name_cannot_write_on_the_terminal),
        TEST(test_neighbours_refuses_other_ports),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
