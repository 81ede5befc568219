/* SPDX-License-Identifier: BSD-2-Clause */
/* Wire faults between a port and a cable that are lists of frames. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "hw-model/fault/fault_wire.h"
#include "tests/test_fixture.h"
#include "lib/bytes.h"
#include "net/wire/eth.h"
#include "net/wire/ipv4.h"
#include "net/wire/tcp.h"
#include "tests/unit/hw-model/fault/fault_bed.h"

enum { FRAME_LEN = 60, FRAMES_MAX = 256, MS = 1000000 };

/* The frames that came out at one end: the first byte names each frame. */
struct frames_seen {
    unsigned int count;
    uint8_t name[FRAMES_MAX];
    uint8_t second_byte[FRAMES_MAX];
};

struct bed {
    struct fault_bed base;
    struct fault_wire wire;
    struct frames_seen port;
    struct frames_seen cable;
    unsigned int room; /* frames that the cable still takes */
    bool answers;      /* the port answers each frame at once */
};

static void see_frame(struct frames_seen *seen, const uint8_t *data)
{
    assert_true(seen->count < FRAMES_MAX);
    seen->name[seen->count] = data[0];
    seen->second_byte[seen->count++] = data[1];
}

static void send_frame(struct bed *bed, uint8_t name)
{
    struct frame_tx frame = {.head_len = FRAME_LEN, .head = {name, 0x55}};

    assert_int_equal(fault_wire_tx(&bed->wire, &frame, 1), 1);
}

static void receive_frame(struct bed *bed, uint8_t name)
{
    uint8_t data[FRAME_LEN] = {name, 0x55};

    fault_wire_rx(&bed->wire,
                  &(struct frame_rx){.data = data, .len_bytes = FRAME_LEN}, 1);
}

static void port_receive(void *ctx, const struct frame_rx *frames,
                         unsigned int n)
{
    struct bed *bed = ctx;

    for (unsigned int i = 0; i < n; i++) {
        uint8_t name = frames[i].data[0];

        see_frame(&bed->port, frames[i].data);
        if (bed->answers) {
            send_frame(bed, (uint8_t)(name + 100));
        }
        /* The answer did not overwrite the frame. */
        assert_int_equal(frames[i].data[0], name);
    }
}

static bool cable_has_room(void *ctx)
{
    return ((struct bed *)ctx)->room > 0;
}

static void cable_send(void *ctx, const struct frame_tx *frame)
{
    struct bed *bed = ctx;
    uint8_t data[FRAME_LEN_MAX];

    assert_true(bed->room > 0);
    bed->room--;
    assert_int_equal(frame_tx_copy(data, frame), FRAME_LEN);
    see_frame(&bed->cable, data);
}

static int set_up(void **state)
{
    struct bed *bed = calloc(1, sizeof(*bed));

    assert_non_null(bed);
    bed->room = UINT32_MAX;
    fault_bed_init(&bed->base);
    fault_wire_init(&bed->wire, &(struct fault_wire_config){
                                    .table = &bed->base.table,
                                    .ctx = bed,
                                    .receive = port_receive,
                                    .has_room = cable_has_room,
                                    .send = cable_send,
                                    .now_ns = fault_bed_now_ns,
                                    .set_timer = fault_bed_set_timer,
                                    .power_cut = fault_bed_power_cut,
                                });
    *state = bed;
    return 0;
}

static int tear_down(void **state)
{
    free(*state);
    return 0;
}

static void add_rule(struct bed *bed, const char *text)
{
    fault_bed_add_rule(&bed->base, text);
}

static void expire_timer(void *wire)
{
    fault_wire_timer(wire);
}

static void wait_ns(struct bed *bed, uint64_t ns)
{
    fault_bed_wait_ns(&bed->base, ns, expire_timer, &bed->wire);
}

static void expect_names(const struct frames_seen *seen, const char *names)
{
    assert_int_equal(seen->count, strlen(names));
    assert_memory_equal(seen->name, names, seen->count);
}

static void test_wire_without_rules_is_idle(void **state)
{
    struct bed *bed = *state;

    assert_true(fault_wire_is_idle(&bed->wire));
    add_rule(bed, "id=1 site=media do=error");
    assert_true(fault_wire_is_idle(&bed->wire));
    add_rule(bed, "id=2 site=wire do=drop nth=1");
    assert_false(fault_wire_is_idle(&bed->wire));
}

static void test_wire_drops_the_frame_that_the_rule_names(void **state)
{
    struct bed *bed = *state;

    add_rule(bed, "id=1 site=wire do=drop nth=2");
    send_frame(bed, 'a');
    send_frame(bed, 'b');
    send_frame(bed, 'c');
    expect_names(&bed->cable, "ac");
}

static void test_wire_inverts_one_bit(void **state)
{
    struct bed *bed = *state;

    add_rule(bed, "id=1 site=wire do=corrupt argument=16");
    receive_frame(bed, 'a');
    send_frame(bed, 'b');
    assert_int_equal(bed->port.second_byte[0], 0x54);
    assert_int_equal(bed->cable.second_byte[0], 0x54);
    expect_names(&bed->port, "a");
    expect_names(&bed->cable, "b");
}

static void test_wire_inverts_a_random_bit_that_the_seed_fixes(void **state)
{
    struct bed *bed = *state;
    unsigned int changed = 0;

    add_rule(bed, "id=1 site=wire do=corrupt seed=3");
    for (unsigned int i = 0; i < 200; i++) {
        receive_frame(bed, 0);
        changed += bed->port.name[i] != 0 || bed->port.second_byte[i] != 0x55;
    }
    assert_in_range(changed, 1, 30); /* 16 of 480 bits, so about 7 */
}

/* A segment of TCP over IPv4 from 10.0.0.1 to 10.0.0.10. */
static uint32_t make_segment(uint8_t *data, uint16_t window)
{
    const struct ipv4 ip = {.src = ip_addr_from_v4(0x0a000001),
                            .dst = ip_addr_from_v4(0x0a00000a),
                            .total_len_bytes = IPV4_LEN + TCP_LEN + 1,
                            .ttl = 64,
                            .protocol = IP_PROTOCOL_TCP};
    uint8_t *tcp = data + ETH_LEN + IPV4_LEN;

    memset(data, 0, FRAME_LEN);
    data[12] = 8;
    ipv4_emit(&ip, data + ETH_LEN);
    put_be16(tcp + TCP_DST_PORT, 7);
    tcp[TCP_DATA_OFFSET] = TCP_LEN / 4 << 4;
    tcp[TCP_FLAGS] = TCP_ACK;
    tcp[TCP_LEN] = 0xa5;
    put_be16(tcp + TCP_WINDOW, window);
    put_be16(tcp + TCP_CHECKSUM,
             tcp_checksum(&ip.src, &ip.dst, tcp, TCP_LEN + 1));
    return ETH_LEN + IPV4_LEN + TCP_LEN + 1;
}

static bool segment_is_right(const uint8_t *tcp)
{
    const struct ip_addr src = ip_addr_from_v4(0x0a000001);
    const struct ip_addr dst = ip_addr_from_v4(0x0a00000a);

    return tcp_checksum(&src, &dst, tcp, TCP_LEN + 1) == 0;
}

static void receive_segment(struct bed *bed, uint16_t window)
{
    uint8_t data[FRAME_LEN];

    fault_wire_rx(&bed->wire,
                  &(struct frame_rx){.data = data,
                                     .len_bytes = make_segment(data, window)},
                  1);
}

static void test_wire_closes_the_window_of_tcp_with_the_right_checksum(
    void **state)
{
    static const uint16_t windows[] = {0, 1, 0x1234, 0xfffe, 0xffff};
    struct bed *bed = *state;
    const uint8_t *tcp = bed->wire.rx_frame + ETH_LEN + IPV4_LEN;

    add_rule(bed, "id=1 site=wire do=zero-window");
    for (size_t i = 0; i < ARRAY_LEN(windows); i++) {
        receive_segment(bed, windows[i]);
        assert_int_equal(get_be16(tcp + TCP_WINDOW), 0);
        assert_true(segment_is_right(tcp));
    }
    receive_frame(bed, 'a'); /* no TCP: it passes */
    assert_int_equal(bed->port.second_byte[ARRAY_LEN(windows)], 0x55);
    assert_int_equal(bed->port.count, ARRAY_LEN(windows) + 1);
}

static void test_wire_breaks_the_checksum_of_tcp_only(void **state)
{
    struct bed *bed = *state;
    const uint8_t *tcp = bed->wire.rx_frame + ETH_LEN + IPV4_LEN;

    add_rule(bed, "id=1 site=wire do=bad-checksum");
    receive_segment(bed, 0x1234);
    assert_false(segment_is_right(tcp));
    assert_int_equal(get_be16(tcp + TCP_WINDOW), 0x1234);
    assert_int_equal(bed->port.count, 1);
}

static void test_wire_duplicates(void **state)
{
    struct bed *bed = *state;

    add_rule(bed, "id=1 site=wire do=duplicate nth=1");
    receive_frame(bed, 'a');
    receive_frame(bed, 'b');
    expect_names(&bed->port, "aab");
    assert_true(bed->wire.num_held == 0);
}

static void test_wire_delays_while_others_pass(void **state)
{
    struct bed *bed = *state;

    add_rule(bed, "id=1 site=wire do=delay argument=5000000 nth=1");
    send_frame(bed, 'a');
    send_frame(bed, 'b');
    assert_int_equal(bed->base.deadline_ns, 5 * MS);
    wait_ns(bed, 5 * MS - 1);
    expect_names(&bed->cable, "b");
    wait_ns(bed, 1);
    expect_names(&bed->cable, "ba");
    assert_int_equal(bed->base.deadline_ns, UINT64_MAX);
}

static void test_wire_delay_beyond_all_time_never_ends(void **state)
{
    struct bed *bed = *state;

    add_rule(bed, "id=1 site=wire do=delay argument=18446744073709551615");
    wait_ns(bed, MS);
    send_frame(bed, 'a');
    wait_ns(bed, MS);
    expect_names(&bed->cable, "");
    assert_int_equal(bed->wire.num_held, 1);
}

static void test_wire_reorders_by_frames(void **state)
{
    struct bed *bed = *state;

    add_rule(bed, "id=1 site=wire do=reorder argument=2 nth=1");
    receive_frame(bed, 'a');
    receive_frame(bed, 'b');
    send_frame(bed, 'x'); /* frames of the other direction do not count */
    expect_names(&bed->port, "b");
    receive_frame(bed, 'c');
    receive_frame(bed, 'd');
    expect_names(&bed->port, "bcad");
}

static void test_wire_reordered_frame_without_successors_comes_late(
    void **state)
{
    struct bed *bed = *state;

    add_rule(bed, "id=1 site=wire do=reorder argument=2");
    receive_frame(bed, 'a');
    wait_ns(bed, FAULT_REORDER_MAX_NS);
    expect_names(&bed->port, "a");
}

static void test_wire_counts_a_refused_frame_once(void **state)
{
    struct bed *bed = *state;
    struct frame_tx frames[3] = {
        {.head_len = FRAME_LEN, .head = {'a'}},
        {.head_len = FRAME_LEN, .head = {'b'}},
        {.head_len = FRAME_LEN, .head = {'c'}},
    };

    add_rule(bed, "id=1 site=wire do=drop nth=3");
    bed->room = 2;
    assert_int_equal(fault_wire_tx(&bed->wire, frames, 3), 2);
    assert_int_equal(fault_wire_tx(&bed->wire, frames + 2, 1), 0);
    assert_int_equal(fault_wire_tx(&bed->wire, frames + 2, 1), 0);
    bed->room = 1;
    assert_int_equal(fault_wire_tx(&bed->wire, frames + 2, 1), 1);
    expect_names(&bed->cable, "ab");
    assert_int_equal(fault_table_find(&bed->base.table, 1)->trigger.matched, 3);
}

static void test_wire_delayed_frame_waits_for_room_without_a_timer(void **state)
{
    struct bed *bed = *state;

    add_rule(bed, "id=1 site=wire do=delay argument=1000000 nth=1");
    send_frame(bed, 'a');
    bed->room = 0;
    bed->base.now_ns += 2 * MS;
    fault_wire_timer(&bed->wire);
    assert_int_equal(bed->base.deadline_ns, UINT64_MAX);
    expect_names(&bed->cable, "");
    bed->room = 1;
    fault_wire_timer(&bed->wire);
    expect_names(&bed->cable, "a");
}

static void test_wire_that_holds_too_much_lets_frames_pass(void **state)
{
    struct bed *bed = *state;

    add_rule(bed, "id=1 site=wire do=delay argument=1000000");
    for (unsigned int i = 0; i < FAULT_WIRE_HELD + 2; i++) {
        send_frame(bed, (uint8_t)i);
    }
    assert_int_equal(bed->cable.count, 2);
    assert_int_equal(bed->wire.overflows, 2);
    wait_ns(bed, MS);
    assert_int_equal(bed->cable.count, FAULT_WIRE_HELD + 2);
}

static void test_wire_port_that_answers_at_once_is_served(void **state)
{
    struct bed *bed = *state;

    bed->answers = true;
    add_rule(bed, "id=1 site=wire do=delay argument=1000000 directions=1");
    add_rule(bed, "id=2 site=wire do=duplicate directions=2");
    receive_frame(bed, 1);
    receive_frame(bed, 2);
    wait_ns(bed, MS);
    expect_names(&bed->port, "\1\2");
    expect_names(&bed->cable, "\145\145\146\146");
    assert_int_equal(bed->wire.num_held, 0);
}

static void test_wire_rule_cuts_the_power(void **state)
{
    struct bed *bed = *state;

    add_rule(bed, "id=1 site=wire do=power-cut nth=2");
    send_frame(bed, 'a');
    assert_true(bed->base.has_power);
    send_frame(bed, 'b');
    assert_false(bed->base.has_power);
    expect_names(&bed->cable, "a");
}

static void test_wire_pulled_cable_loses_held_frames(void **state)
{
    struct bed *bed = *state;

    add_rule(bed, "id=1 site=wire do=delay argument=1000000");
    receive_frame(bed, 'a');
    fault_wire_clear(&bed->wire);
    assert_int_equal(bed->base.deadline_ns, UINT64_MAX);
    wait_ns(bed, 2 * MS);
    expect_names(&bed->port, "");
}

static void test_wire_passes_frames_longer_than_any_port_takes(void **state)
{
    struct bed *bed = *state;
    uint8_t *data = calloc(1, FRAME_LEN_MAX + 1);

    assert_non_null(data);
    data[0] = 'a';
    add_rule(bed, "id=1 site=wire do=drop");
    fault_wire_rx(
        &bed->wire,
        &(struct frame_rx){.data = data, .len_bytes = FRAME_LEN_MAX + 1}, 1);
    expect_names(&bed->port, "a");
    free(data);
}

TEST_FIXTURE(set_up, tear_down)
