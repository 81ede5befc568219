/* SPDX-License-Identifier: BSD-2-Clause */
/* LLDP neighbours, as the console and log page D0h show them. */
#include "bed_fixture.h"

#include <string.h>

#include "lib/bytes.h"
#include "tests/test_fixture.h"
#include "tests/unit/net/wire/golden_services.h"

enum { ETH_HEADER = 14, HOST_END = 1 };

static void expect_answer(const char *line, const char *answer)
{
    const char *said = type_line(line);

    if (strstr(said, answer) == NULL) {
        print_message("%s", said);
        fail_msg("the answer to %s does not contain %s", line, answer);
    }
}

/* Send an LLDPDU to the drive's port, as if from the host. */
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

static void test_console_shows_each_fact_about_a_neighbour(void **state)
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
    expect_answer("neighbours\r", "port 1: nothing heard yet");
    send_lldp(1, lldp_golden, sizeof(lldp_golden));
    for (size_t i = 0; i < ARRAY_LEN(facts); i++) {
        expect_answer("neighbours 1\r", facts[i]);
    }
    expect_answer("neighbours 0\r", "port 0: nothing heard yet");
    assert_null(strstr(type_line("neighbours 0\r"), "port 1"));
    native_disconnect(&bed.drive->machine, 1, &bed.host->machine, 1);
    native_world_pass(&bed.world, 100000000);
    expect_answer("neighbours\r", "port 1: nothing heard: the link is down");
}

static void test_a_neighbours_name_cannot_control_the_terminal(void **state)
{
    static const uint8_t pdu[] = {
        0x02, 0x04, 0x07, 'a',  '\033', 'c', 0x04, 0x03, 0x07, 'b',  '\n', 0x06,
        0x02, 0x00, 0x78, 0x0a, 0x04,   'x', '\r', '\n', 0x9b, 0x00, 0x00,
    };

    (void)state;
    send_lldp(0, pdu, sizeof(pdu));
    expect_answer("neighbours 0\r", "neighbour 0: chassis a?c\n");
    expect_answer("neighbours 0\r", "neighbour 0: port b?\n");
    expect_answer("neighbours 0\r", "neighbour 0: system x???\n");
}

static unsigned int count_of(const char *text, const char *part)
{
    unsigned int count = 0;

    for (const char *at = text; (at = strstr(at, part)) != NULL; at++) {
        count++;
    }
    return count;
}

/* A neighbour of port 0 whose name is one character. */
static void send_name(char name)
{
    const uint8_t pdu[] = {
        0x02, 0x02, 0x07, 'a',  0x04, 0x02,          0x07, 'b',  0x06,
        0x02, 0x00, 0x78, 0x0a, 0x01, (uint8_t)name, 0x00, 0x00,
    };

    send_lldp(0, pdu, sizeof(pdu));
}

static void test_changing_neighbour_fills_a_limited_part_of_the_log(
    void **state)
{
    const char *log = machine_console(&bed.drive->machine);
    size_t before = strlen(log);

    (void)state;
    for (unsigned int i = 0; i < 100; i++) {
        send_name((char)('a' + i % 2));
    }
    /* Port 1 has its own limit. */
    send_lldp(1, lldp_golden, sizeof(lldp_golden));
    log = machine_console(&bed.drive->machine) + before;
    assert_int_equal(count_of(log, "lldp: port 0: "), 10);
    assert_int_equal(count_of(log, "lldp: port 1: "), 1);
    native_world_pass(&bed.world, 61000000000);
    log = machine_console(&bed.drive->machine) + before;
    assert_int_equal(count_of(log, "lldp: port 0: "), 11);
    assert_non_null(strstr(log, "lldp: port 0: 90 more neighbour changes were "
                                "not logged (at most 10 a minute are)"));
    /* A new period has begun: the change is logged, and none was left out. */
    send_name('c');
    native_world_pass(&bed.world, 61000000000);
    log = machine_console(&bed.drive->machine) + before;
    assert_int_equal(count_of(log, "lldp: port 0: "), 12);
}

static void test_neighbours_refuses_other_ports(void **state)
{
    (void)state;
    expect_answer("neighbours 2\r", "error: there is no port 2");
    expect_answer("neighbours 0 1\r", "error: neighbours [PORT]");
    type_line("config set port.1.lldp send\r");
    expect_answer("config save\r", "ok");
    expect_answer("neighbours\r", "port 1: does not listen to LLDP");
}

/* Log page D0h: docs/nvme.md, "Log pages of our own". */
enum { LOG_PART = 512, LOG_PORT_PLACES = 8, LOG_PLACES = 16 };

/* The host reads no more than a part with the entries of one port at once. */
static void read_page(uint8_t *page)
{
    const uint32_t len[] = {LOG_PART * (1 + LOG_PORT_PLACES),
                            LOG_PART * LOG_PORT_PLACES};

    memset(page, 0xa5, LOG_PART * (1 + LOG_PLACES));
    assert_int_equal(
        host_get_log(&bed.host->host, LOG_NEIGHBOURS, 0, page, len[0]), 0);
    assert_int_equal(host_get_log(&bed.host->host, LOG_NEIGHBOURS, len[0],
                                  page + len[0], len[1]),
                     0);
}

static const uint8_t *place_of(const uint8_t *page, uint8_t port)
{
    const uint8_t *found = NULL;

    for (unsigned int i = 1; i <= LOG_PLACES; i++) {
        const uint8_t *place = page + i * LOG_PART;

        if (place[0] == 1 && place[1] == port) {
            assert_null(found);
            found = place;
        } else if (place[0] == 0) { /* An unused place is all zero. */
            for (unsigned int k = 0; k < LOG_PART; k++) {
                assert_int_equal(place[k], 0);
            }
        }
    }
    return found;
}

static void test_log_page_lists_the_neighbours(void **state)
{
    static const uint8_t mac[] = {0x52, 0x54, 0x00, 0x12, 0x34, 0x56, 0x57};
    static const uint8_t ipv4[] = {[10] = 0xff, 0xff, 10, 0, 0, 1};
    uint8_t page[LOG_PART * (1 + LOG_PLACES)];
    const uint8_t *place;

    (void)state;
    bed_connect(&bed, 0, 1, 64);
    read_page(page);
    assert_int_equal(get_le16(page), 1);
    assert_int_equal(get_le16(page + 2), LOG_PLACES);
    assert_int_equal(get_le16(page + 4), LOG_PART);
    assert_int_equal(get_le64(page + 64 + 8), 0); /* Received on port 1. */
    assert_null(place_of(page, 0));
    assert_null(place_of(page, 1));

    send_lldp(1, lldp_golden, sizeof(lldp_golden));
    read_page(page);
    assert_int_equal(get_le64(page + 16 + 8), 0);
    assert_int_equal(get_le64(page + 64 + 8), 1);
    assert_null(place_of(page, 0));
    place = place_of(page, 1);
    assert_non_null(place);
    assert_in_range(get_le16(place + 2), 118, 120);
    assert_int_equal(place[4], 4); /* Chassis ID subtype 4: a MAC address. */
    assert_int_equal(place[5], 6);
    assert_memory_equal(place + 24, mac, 6);
    assert_int_equal(place[30], 0);
    assert_int_equal(place[6], 3);
    assert_int_equal(place[7], 6);
    assert_memory_equal(place + 88, mac, 5);
    assert_int_equal(get_le16(place + 8), 0x9c);
    assert_int_equal(get_le16(place + 10), 0x80);
    assert_int_equal(get_le16(place + 12), 1);
    assert_int_equal(get_le16(place + 14), 1522);
    assert_int_equal(get_le16(place + 16), 0x5c);
    assert_int_equal(place[18], 0x03);
    assert_int_equal(place[19], 2);
    assert_string_equal((const char *)place + 152, "eth0");
    assert_string_equal((const char *)place + 216, "host");
    assert_string_equal((const char *)place + 280, "Linux");
    assert_memory_equal(place + 440, ipv4, 16);
    assert_int_equal(place[456], 0xfe);
    host_disconnect(&bed.host->host);
}

static void test_log_page_has_eight_neighbours_of_a_port(void **state)
{
    uint8_t page[LOG_PART * (1 + LOG_PLACES)];
    uint8_t pdu[sizeof(lldp_golden)];

    (void)state;
    bed_connect(&bed, 0, 1, 64);
    memcpy(pdu, lldp_golden, sizeof(pdu));
    for (unsigned int i = 0; i <= LOG_PORT_PLACES; i++) {
        pdu[8] = (uint8_t)i; /* the last byte of the chassis's MAC address */
        send_lldp(1, pdu, sizeof(pdu));
    }
    read_page(page);
    for (unsigned int i = 1; i <= LOG_PLACES; i++) {
        assert_int_equal(page[i * LOG_PART], i > LOG_PORT_PLACES);
    }
    /* The ninth one is only counted. */
    assert_int_equal(get_le64(page + 64 + 4 * 8), 1);
    host_disconnect(&bed.host->host);
}

static size_t put_tlv(uint8_t *at, unsigned int type, uint8_t subtype,
                      unsigned int len)
{
    put_be16(at, (uint16_t)(type << 9 | len));
    memset(at + 2, 'x', len);
    if (subtype != 0) {
        at[2] = subtype;
    }
    return 2 + len;
}

/* Text that is longer than its field is truncated, and the next field is
 * intact. */
static void test_log_page_truncates_long_texts(void **state)
{
    uint8_t page[LOG_PART * (1 + LOG_PLACES)];
    uint8_t pdu[1400];
    const uint8_t *place;
    size_t len = 0;

    (void)state;
    len += put_tlv(pdu + len, 1, 7, 256);
    len += put_tlv(pdu + len, 2, 7, 256);
    memcpy(pdu + len, "\x06\x02\x00\x78", 4);
    len += 4;
    len += put_tlv(pdu + len, 4, 0, 255);
    len += put_tlv(pdu + len, 5, 0, 255);
    len += put_tlv(pdu + len, 6, 0, 255);
    memset(pdu + len, 0, 2);
    len += 2;
    send_lldp(0, pdu, len);
    bed_connect(&bed, 0, 1, 64);
    read_page(page);
    place = place_of(page, 0);
    assert_non_null(place);
    assert_int_equal(place[5], 64);
    assert_int_equal(place[7], 64);
    assert_int_equal(get_le16(place + 12), 0);
    for (unsigned int i = 24; i < LOG_PART; i++) {
        assert_int_equal(place[i], i < 440 ? 'x' : 0);
    }
    host_disconnect(&bed.host->host);
}

TEST_FIXTURE(setup, teardown)
