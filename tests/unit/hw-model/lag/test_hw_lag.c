/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The aggregation block between two ports and an RNIC that only count frames.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lib/regfields.h"
#include "hw-model/lag/hw_lag.h"
#include "hw-model/regs/lag.h"
#include "lib/bytes.h"
#include "net/wire/bth.h"
#include "net/wire/eth.h"
#include "net/wire/ipv4.h"
#include "net/wire/ipv6.h"
#include "net/wire/udp.h"
#include "tests/test_fixture.h"

enum { BURST = 16, MS = 1000000 };

struct member {
    unsigned int taken;
    unsigned int room; /* frames that it still takes */
    uint32_t qps[64];  /* QPs of the frames that it took */
    uint8_t paused;
};

struct bed {
    struct hw_lag lag;
    struct member members[HW_LAG_PORTS];
    uint64_t now_ns;
    unsigned int received[HW_LAG_PORTS];
    unsigned int toe_received[HW_LAG_PORTS];
    unsigned int ready[HW_LAG_PORTS];
    unsigned int link_events;
    bool link_up[HW_LAG_PORTS];
};

static uint64_t now_ns(void *ctx)
{
    return ((struct bed *)ctx)->now_ns;
}

static void rnic_rx(void *ctx, unsigned int port, const struct frame_rx *frames,
                    unsigned int n)
{
    (void)frames;
    ((struct bed *)ctx)->received[port] += n;
}

static void toe_rx(void *ctx, unsigned int port, const struct frame_rx *frames,
                   unsigned int n)
{
    (void)frames;
    ((struct bed *)ctx)->toe_received[port] += n;
}

static void rnic_ready(void *ctx, unsigned int port)
{
    ((struct bed *)ctx)->ready[port]++;
}

static void link_changed(void *ctx, unsigned int port, bool is_up)
{
    struct bed *bed = ctx;

    bed->link_events++;
    bed->link_up[port] = is_up;
}

static unsigned int take_frames(void *ctx, const struct frame_tx *burst,
                                unsigned int count)
{
    struct member *member = ctx;
    unsigned int n;

    for (n = 0; n < count && member->room != 0; n++) {
        const uint8_t *bth = burst[n].head + ETH_LEN + IPV4_LEN + UDP_LEN;

        member->qps[member->taken++ % ARRAY_LEN(member->qps)] =
            get_be24(bth + BTH_DEST_QP);
        member->room--;
    }
    return n;
}

static uint32_t read_reg(struct bed *bed, uint32_t offset)
{
    uint32_t value;

    assert_true(hw_lag_read(&bed->lag, offset, &value));
    return value;
}

static void write_reg(struct bed *bed, uint32_t offset, uint32_t value)
{
    assert_true(hw_lag_write(&bed->lag, offset, value));
}

static uint64_t read_counter(struct bed *bed, enum lag_counter which)
{
    uint32_t at = LAG_COUNTER_BASE + 8 * (uint32_t)which;
    uint32_t low = read_reg(bed, at);

    return (uint64_t)read_reg(bed, at + 4) << 32 | low;
}

static int setup(void **state)
{
    struct bed *bed = calloc(1, sizeof(*bed));
    const struct hw_lag_ops ops = {
        .ctx = bed,
        .now_ns = now_ns,
        .rnic_rx = rnic_rx,
        .toe_rx = toe_rx,
        .rnic_ready = rnic_ready,
        .link_changed = link_changed,
    };

    assert_non_null(bed);
    bed->now_ns = UINT64_C(1000) * MS;
    hw_lag_init(&bed->lag, &ops);
    for (unsigned int i = 0; i < HW_LAG_PORTS; i++) {
        const struct frame_sink sink = {.ctx = &bed->members[i],
                                        .send = take_frames,
                                        .paused = &bed->members[i].paused};

        bed->members[i].room = UINT32_MAX;
        hw_lag_attach(&bed->lag, i, &sink);
        hw_lag_link(&bed->lag, i, true);
    }
    bed->link_events = 0;
    *state = bed;
    return 0;
}

static int teardown(void **state)
{
    free(*state);
    return 0;
}

static void switch_on(struct bed *bed, enum lag_mode mode, bool follows)
{
    write_reg(bed, A_LAG_MEMBERS,
              FIELD_MAKE(LAG_MEMBERS, COLLECT, 3) |
                  FIELD_MAKE(LAG_MEMBERS, DISTRIBUTE, 3));
    write_reg(bed, A_LAG_CTRL,
              FIELD_MAKE(LAG_CTRL, MODE, mode) |
                  FIELD_MAKE(LAG_CTRL, FOLLOW, follows));
    assert_int_equal(FIELD_GET(read_reg(bed, A_LAG_CTRL), LAG_CTRL, MODE),
                     mode);
}

/* Make a RoCEv2 frame of a QP, over IPv4. */
static struct frame_tx frame_of(uint32_t qp)
{
    struct frame_tx frame = {.head_len =
                                 ETH_LEN + IPV4_LEN + UDP_LEN + BTH_LEN};

    put_be16(frame.head + ETH_TYPE, ETHERTYPE_IPV4);
    put_be32(frame.head + ETH_LEN + IPV4_SRC, 0x0a000001);
    put_be16(frame.head + ETH_LEN + IPV4_LEN + UDP_DST_PORT, UDP_PORT_ROCE);
    put_be24(frame.head + ETH_LEN + IPV4_LEN + UDP_LEN + BTH_DEST_QP, qp);
    return frame;
}

/*
 * Send frames of the `n` QPs from `first` on.
 * @return the number of frames taken
 */
static unsigned int send_frames(struct bed *bed, unsigned int port,
                                uint32_t first, unsigned int n)
{
    struct frame_sink sink = hw_lag_sink(&bed->lag, port);
    struct frame_tx burst[BURST];

    assert_true(n <= BURST);
    for (unsigned int i = 0; i < n; i++) {
        burst[i] = frame_of(first + i);
    }
    return sink.send(sink.ctx, burst, n);
}

static void receive_frame(struct bed *bed, unsigned int port, bool is_group)
{
    uint8_t data[64] = {is_group};
    const struct frame_rx frame = {.data = data, .len_bytes = sizeof(data)};

    hw_lag_rx(&bed->lag, port, &frame, 1);
}

static void test_lag_switched_off_passes_everything_unchanged(void **state)
{
    struct bed *bed = *state;

    for (unsigned int i = 0; i < HW_LAG_PORTS; i++) {
        unsigned int ready = bed->ready[i];

        assert_int_equal(send_frames(bed, i, 1, 3), 3);
        assert_int_equal(bed->members[i].taken, 3);
        receive_frame(bed, i, false);
        assert_int_equal(bed->received[i], 1);
        hw_lag_ready(&bed->lag, i);
        assert_int_equal(bed->ready[i], ready + 1);
        hw_lag_link(&bed->lag, i, false);
        assert_false(bed->link_up[i]);
        bed->members[i].paused = (uint8_t)(1u << i);
        hw_lag_ready(&bed->lag, i);
        assert_int_equal(*hw_lag_sink(&bed->lag, i).paused, 1u << i);
    }
    assert_int_equal(bed->link_events, 2);
}

static void test_lag_registers_have_defaults_after_reset(void **state)
{
    struct bed *bed = *state;
    uint32_t value;

    switch_on(bed, LAG_MODE_DISTRIBUTE, true);
    write_reg(bed, A_LAG_ACTIVE, 1);
    write_reg(bed, A_LAG_QUIET, 5);
    (void)send_frames(bed, 0, 0, 4);
    write_reg(bed, A_LAG_CTRL, FIELD_MAKE(LAG_CTRL, RESET, 1));
    assert_int_equal(read_reg(bed, A_LAG_ID), LAG_ID_VALUE);
    assert_int_equal(read_reg(bed, A_LAG_CTRL), 0);
    assert_int_equal(read_reg(bed, A_LAG_MEMBERS), 0);
    assert_int_equal(read_reg(bed, A_LAG_ACTIVE), 0);
    assert_int_equal(read_reg(bed, A_LAG_QUIET), LAG_QUIET_MS);
    assert_int_equal(FIELD_GET(read_reg(bed, A_LAG_STATUS), LAG_STATUS, LINKS),
                     3);
    for (unsigned int i = 0; i < LAG_COUNTERS; i++) {
        assert_int_equal(read_counter(bed, (enum lag_counter)i), 0);
    }
    write_reg(bed, A_LAG_CTRL, 3); /* there is no such mode */
    assert_int_equal(read_reg(bed, A_LAG_CTRL), 0);
    assert_false(hw_lag_read(&bed->lag, 0x030, &value));
    assert_false(hw_lag_write(&bed->lag, A_LAG_STATUS, 0));
    assert_false(hw_lag_write(&bed->lag, LAG_COUNTER_BASE, 0));
}

static void test_lag_sends_only_to_the_active_member(void **state)
{
    struct bed *bed = *state;

    switch_on(bed, LAG_MODE_STANDBY, false);
    assert_int_equal(send_frames(bed, 0, 1, BURST), BURST);
    assert_int_equal(bed->members[0].taken, BURST);
    write_reg(bed, A_LAG_ACTIVE, 1);
    assert_int_equal(send_frames(bed, 0, 1, 2), 2);
    assert_int_equal(bed->members[0].taken, BURST);
    assert_int_equal(bed->members[1].taken, 2);
    assert_int_equal(read_counter(bed, LAG_COUNT_TX0), BURST);
    assert_int_equal(read_counter(bed, LAG_COUNT_TX1), 2);
    assert_int_equal(read_counter(bed, LAG_COUNT_MOVES), 0);
    /* Frames on the RNIC's other port are lost. */
    assert_int_equal(send_frames(bed, 1, 1, 2), 2);
    assert_int_equal(read_counter(bed, LAG_COUNT_TX_DROPPED), 2);
}

static void test_lag_frames_of_both_members_arrive_on_port_0(void **state)
{
    struct bed *bed = *state;

    switch_on(bed, LAG_MODE_STANDBY, false);
    receive_frame(bed, 0, false);
    receive_frame(bed, 1, false);
    assert_int_equal(bed->received[0], 2);
    assert_int_equal(bed->received[1], 0);
    write_reg(bed, A_LAG_MEMBERS,
              FIELD_MAKE(LAG_MEMBERS, COLLECT, 1) |
                  FIELD_MAKE(LAG_MEMBERS, DISTRIBUTE, 1));
    receive_frame(bed, 1, false);
    assert_int_equal(bed->received[0], 2);
    assert_int_equal(read_counter(bed, LAG_COUNT_RX_DROPPED1), 1);
    assert_int_equal(read_counter(bed, LAG_COUNT_RX_DROPPED0), 0);
}

static void test_lag_leaves_a_dead_member_at_once_and_does_not_return(
    void **state)
{
    struct bed *bed = *state;

    switch_on(bed, LAG_MODE_STANDBY, false);
    hw_lag_link(&bed->lag, 0, false);
    assert_int_equal(read_reg(bed, A_LAG_ACTIVE), 1);
    assert_int_equal(read_counter(bed, LAG_COUNT_MOVES), 1);
    assert_int_equal(bed->link_events, 0); /* the aggregate is up */
    assert_int_equal(send_frames(bed, 0, 1, 2), 2);
    assert_int_equal(bed->members[1].taken, 2);
    write_reg(bed, A_LAG_ACTIVE, 0); /* port 0 has no link */
    assert_int_equal(read_reg(bed, A_LAG_ACTIVE), 1);
    hw_lag_link(&bed->lag, 0, true);
    assert_int_equal(read_reg(bed, A_LAG_ACTIVE), 1);

    hw_lag_link(&bed->lag, 0, false);
    hw_lag_link(&bed->lag, 1, false);
    assert_int_equal(bed->link_events, 1);
    assert_false(bed->link_up[0]);
    /* A dead link drops frames. */
    assert_int_equal(send_frames(bed, 0, 1, 3), 3);
    assert_int_equal(read_counter(bed, LAG_COUNT_TX_DROPPED), 3);
    hw_lag_link(&bed->lag, 0, true);
    assert_int_equal(read_reg(bed, A_LAG_ACTIVE), 0);
    assert_int_equal(bed->link_events, 2);
    assert_true(bed->link_up[0]);
}

static void test_lag_follows_a_peer_to_the_other_member(void **state)
{
    struct bed *bed = *state;

    switch_on(bed, LAG_MODE_STANDBY, true);
    receive_frame(bed, 0, false);
    bed->now_ns += 99 * MS;
    receive_frame(bed, 1, false); /* port 1 has just received one */
    assert_int_equal(read_reg(bed, A_LAG_ACTIVE), 0);
    bed->now_ns += 1 * MS;
    receive_frame(bed, 1, true); /* a group frame has no effect */
    assert_int_equal(read_reg(bed, A_LAG_ACTIVE), 0);
    receive_frame(bed, 1, false);
    assert_int_equal(read_reg(bed, A_LAG_ACTIVE), 1);
    assert_int_equal(read_counter(bed, LAG_COUNT_MOVES), 1);
    /* A flood on both ports does not change the active port. */
    for (unsigned int i = 0; i < 1000; i++) {
        bed->now_ns += MS;
        receive_frame(bed, 0, false);
        receive_frame(bed, 1, false);
    }
    assert_int_equal(read_counter(bed, LAG_COUNT_MOVES), 1);
    /* A frame that firmware reports has the same effect. */
    bed->now_ns += 200 * MS;
    write_reg(bed, A_LAG_HEARD, 0);
    assert_int_equal(read_reg(bed, A_LAG_ACTIVE), 0);
}

static void test_lag_does_not_follow_to_a_member_it_may_not_send_on(
    void **state)
{
    struct bed *bed = *state;

    switch_on(bed, LAG_MODE_STANDBY, true);
    write_reg(bed, A_LAG_MEMBERS,
              FIELD_MAKE(LAG_MEMBERS, COLLECT, 3) |
                  FIELD_MAKE(LAG_MEMBERS, DISTRIBUTE, 1));
    receive_frame(bed, 1, false);
    assert_int_equal(read_reg(bed, A_LAG_ACTIVE), 0);
    switch_on(bed, LAG_MODE_STANDBY, false);
    receive_frame(bed, 1, false);
    assert_int_equal(read_reg(bed, A_LAG_ACTIVE), 0);
    write_reg(bed, A_LAG_HEARD, 1);
    assert_int_equal(read_reg(bed, A_LAG_ACTIVE), 0);
}

/* Each QP stays on its member, and both members send. */
static void test_lag_distributes_by_flow(void **state)
{
    struct bed *bed = *state;
    unsigned int first = 0;

    switch_on(bed, LAG_MODE_DISTRIBUTE, false);
    for (uint32_t qp = 2; qp < 1026; qp++) {
        unsigned int before[HW_LAG_PORTS] = {bed->members[0].taken,
                                             bed->members[1].taken};
        unsigned int got;

        for (unsigned int i = 0; i < 3; i++) {
            assert_int_equal(send_frames(bed, 0, qp, 1), 1);
        }
        got = bed->members[0].taken - before[0];
        assert_true(got == 0 || got == 3);
        assert_int_equal(got + bed->members[1].taken - before[1], 3);
        first += got == 3;
    }
    assert_in_range(first, 1024 * 4 / 10, 1024 * 6 / 10);
}

/* A field of a frame, and whether frames that differ in it are two flows. */
struct part {
    const char *name;
    uint16_t type; /* EtherType of the frame */
    uint16_t at;   /* offset of the field's last byte, without tag */
    bool is_flow;
};

enum {
    V4_UDP = ETH_LEN + IPV4_LEN,
    V6_UDP = ETH_LEN + IPV6_LEN,
    V1_BTH = ETH_LEN + IPV6_LEN,
};

static const struct part parts[] = {
    {"destination MAC", ETHERTYPE_IPV4, ETH_DST + 5, true},
    {"its other end", ETHERTYPE_IPV4, ETH_DST + 1, true},
    {"source MAC", ETHERTYPE_IPV4, ETH_SRC + 5, false},
    {"IPv4 length", ETHERTYPE_IPV4, ETH_LEN + IPV4_TOTAL_LEN + 1, false},
    {"IPv4 source", ETHERTYPE_IPV4, ETH_LEN + IPV4_SRC + 3, true},
    {"IPv4 destination", ETHERTYPE_IPV4, ETH_LEN + IPV4_DST + 3, true},
    {"UDP source port", ETHERTYPE_IPV4, V4_UDP + UDP_SRC_PORT + 1, true},
    {"UDP length", ETHERTYPE_IPV4, V4_UDP + UDP_LENGTH + 1, false},
    {"opcode", ETHERTYPE_IPV4, V4_UDP + UDP_LEN + BTH_OPCODE, false},
    {"destination QP", ETHERTYPE_IPV4, V4_UDP + UDP_LEN + BTH_DEST_QP + 2,
     true},
    {"PSN", ETHERTYPE_IPV4, V4_UDP + UDP_LEN + BTH_PSN + 2, false},
    {"IPv6 source", ETHERTYPE_IPV6, ETH_LEN + IPV6_SRC + 15, true},
    {"IPv6 prefix", ETHERTYPE_IPV6, ETH_LEN + IPV6_SRC + 7, true},
    {"IPv6 destination", ETHERTYPE_IPV6, ETH_LEN + IPV6_DST + 15, true},
    {"UDP source port", ETHERTYPE_IPV6, V6_UDP + UDP_SRC_PORT + 1, true},
    {"destination QP", ETHERTYPE_IPV6, V6_UDP + UDP_LEN + BTH_DEST_QP + 2,
     true},
    {"PSN", ETHERTYPE_IPV6, V6_UDP + UDP_LEN + BTH_PSN + 2, false},
    {"GID", ETHERTYPE_ROCE_V1, ETH_LEN + IPV6_DST + 15, true},
    {"destination QP", ETHERTYPE_ROCE_V1, V1_BTH + BTH_DEST_QP + 2, true},
    {"PSN", ETHERTYPE_ROCE_V1, V1_BTH + BTH_PSN + 2, false},
};

/* The fields of a flow choose the member; other fields do not. */
static void test_lag_member_depends_on_every_field_of_a_flow(void **state)
{
    struct bed *bed = *state;
    struct frame_sink sink = hw_lag_sink(&bed->lag, 0);

    switch_on(bed, LAG_MODE_DISTRIBUTE, false);
    for (unsigned int k = 0; k < 2 * ARRAY_LEN(parts); k++) {
        const struct part *part = &parts[k / 2];
        unsigned int tag = k % 2 == 0 ? 0 : ETH_TAGGED_LEN - ETH_LEN;
        unsigned int at = part->at + (part->at < ETH_TYPE ? 0 : tag);
        struct frame_tx frame = {
            .head_len = (uint16_t)(V6_UDP + UDP_LEN + BTH_LEN + tag)};

        bed->members[0].taken = bed->members[1].taken = 0;
        put_be16(frame.head + ETH_TYPE, ETHERTYPE_VLAN);
        put_be16(frame.head + ETH_TYPE + tag, part->type);
        for (unsigned int i = 0; i < 64; i++) {
            frame.head[at] = (uint8_t)i;
            assert_int_equal(sink.send(sink.ctx, &frame, 1), 1);
        }
        if ((bed->members[0].taken % 64 != 0) != part->is_flow) {
            fail_msg("%s of type %04x, %u-byte tag: %u frames to port 0",
                     part->name, part->type, tag, bed->members[0].taken);
        }
    }
}

static void test_lag_moves_all_flows_to_the_member_that_is_left(void **state)
{
    struct bed *bed = *state;

    switch_on(bed, LAG_MODE_DISTRIBUTE, false);
    hw_lag_link(&bed->lag, 1, false);
    assert_int_equal(send_frames(bed, 0, 1, BURST), BURST);
    assert_int_equal(bed->members[0].taken, BURST);
    hw_lag_link(&bed->lag, 1, true);
    write_reg(bed, A_LAG_MEMBERS,
              FIELD_MAKE(LAG_MEMBERS, COLLECT, 3) |
                  FIELD_MAKE(LAG_MEMBERS, DISTRIBUTE, 2));
    assert_int_equal(send_frames(bed, 0, 1, BURST), BURST);
    assert_int_equal(bed->members[1].taken, BURST);
}

/* A full member does not change the order of frames in a burst. */
static void test_lag_stops_where_a_member_is_full(void **state)
{
    struct bed *bed = *state;
    unsigned int ready, sent, all = 0;

    switch_on(bed, LAG_MODE_DISTRIBUTE, false);
    bed->members[1].room = 1;
    sent = send_frames(bed, 0, 100, BURST);
    assert_int_equal(sent, bed->members[0].taken + bed->members[1].taken);
    assert_true(sent < BURST);
    assert_int_equal(bed->members[1].taken, 1);
    ready = bed->ready[0];
    bed->members[1].room = UINT32_MAX;
    hw_lag_ready(&bed->lag, 1);
    assert_int_equal(bed->ready[0], ready + 1);
    assert_int_equal(send_frames(bed, 0, 100 + sent, BURST - sent),
                     BURST - sent);
    for (unsigned int i = 0; i < HW_LAG_PORTS; i++) {
        for (unsigned int k = 1; k < bed->members[i].taken; k++) {
            assert_true(bed->members[i].qps[k] > bed->members[i].qps[k - 1]);
        }
        all += bed->members[i].taken;
    }
    assert_int_equal(all, BURST);

    /* When a member loses its link, no frame waits for it. */
    ready = bed->ready[0];
    hw_lag_link(&bed->lag, 1, false);
    assert_true(bed->ready[0] > ready);
    ready = bed->ready[0];
    hw_lag_link(&bed->lag, 1, true);
    write_reg(bed, A_LAG_MEMBERS, FIELD_MAKE(LAG_MEMBERS, DISTRIBUTE, 1));
    assert_true(bed->ready[0] > ready);
}

static void test_lag_pauses_what_any_member_in_use_pauses(void **state)
{
    struct bed *bed = *state;
    const uint8_t *paused = hw_lag_sink(&bed->lag, 0).paused;

    bed->members[0].paused = 0x01;
    bed->members[1].paused = 0x80;
    switch_on(bed, LAG_MODE_DISTRIBUTE, false);
    assert_int_equal(*paused, 0x81);
    switch_on(bed, LAG_MODE_STANDBY, false);
    assert_int_equal(*paused, 0x01);
    hw_lag_link(&bed->lag, 0, false);
    assert_int_equal(*paused, 0x80);
    bed->members[1].paused = 0;
    hw_lag_ready(&bed->lag, 1);
    assert_int_equal(*paused, 0);
}

/* Frames of any kind and length: the hash does not read beyond the head. */
static void test_lag_hash_stays_within_the_head(void **state)
{
    static const uint16_t types[] = {ETHERTYPE_IPV4, ETHERTYPE_IPV6,
                                     ETHERTYPE_ROCE_V1, ETHERTYPE_ARP};
    struct bed *bed = *state;
    struct frame_sink sink = hw_lag_sink(&bed->lag, 0);
    unsigned int n = 0;

    switch_on(bed, LAG_MODE_DISTRIBUTE, false);
    for (unsigned int k = 0; k < 2 * ARRAY_LEN(types); k++) {
        for (uint16_t len = ETH_LEN; len <= FRAME_HEAD_MAX; len++, n++) {
            struct frame_tx frame = {.head_len = len};
            bool is_tagged = k >= ARRAY_LEN(types);

            put_be16(frame.head + ETH_TYPE, ETHERTYPE_VLAN);
            put_be16(frame.head + (is_tagged ? ETH_TAGGED_TYPE : ETH_TYPE),
                     types[k % ARRAY_LEN(types)]);
            assert_int_equal(sink.send(sink.ctx, &frame, 1), 1);
        }
    }
    assert_int_equal(
        read_counter(bed, LAG_COUNT_TX0) + read_counter(bed, LAG_COUNT_TX1), n);
}

static void test_lag_loaded_state_is_checked(void **state)
{
    struct bed *bed = *state;

    assert_true(hw_lag_loaded(&bed->lag));
    bed->lag.active = 2;
    assert_false(hw_lag_loaded(&bed->lag));
    bed->lag.active = 1;
    bed->lag.ctrl = 3;
    assert_false(hw_lag_loaded(&bed->lag));
    bed->lag.ctrl = 2;
    bed->lag.links = 4;
    assert_false(hw_lag_loaded(&bed->lag));
}

static void test_lag_continues_from_a_loaded_state(void **state)
{
    struct bed *bed = *state;
    const uint8_t *paused = hw_lag_sink(&bed->lag, 0).paused;

    switch_on(bed, LAG_MODE_STANDBY, false);
    bed->members[0].paused = 0x04; /* as loaded with the port's state */
    bed->members[1].paused = 0x08;
    assert_true(hw_lag_loaded(&bed->lag));
    assert_int_equal(*paused, 0x04);
    assert_int_equal(read_reg(bed, A_LAG_ACTIVE), 0);
    /* The active member has no cable on the new machine. */
    bed->lag.links = BIT(1);
    assert_true(hw_lag_loaded(&bed->lag));
    assert_int_equal(read_reg(bed, A_LAG_ACTIVE), 1);
    assert_int_equal(read_counter(bed, LAG_COUNT_MOVES), 1);
    assert_int_equal(*paused, 0x08);
    bed->lag.links = 0; /* without any link, the active port does not change */
    assert_true(hw_lag_loaded(&bed->lag));
    assert_int_equal(read_reg(bed, A_LAG_ACTIVE), 1);
}

static void test_lag_passes_tcp_frames_as_those_of_the_rnic(void **state)
{
    struct bed *bed = *state;
    const uint8_t data[64] = {0x02};
    const struct frame_rx frame = {.data = data, .len_bytes = sizeof(data)};

    hw_lag_rx_toe(&bed->lag, 1, &frame, 1);
    assert_int_equal(bed->toe_received[1], 1);
    switch_on(bed, LAG_MODE_STANDBY, false);
    hw_lag_rx_toe(&bed->lag, 1, &frame, 1);
    assert_int_equal(bed->toe_received[0], 1); /* the aggregate */
    assert_int_equal(bed->received[0] + bed->received[1], 0);
    write_reg(bed, A_LAG_MEMBERS, FIELD_MAKE(LAG_MEMBERS, COLLECT, 1));
    hw_lag_rx_toe(&bed->lag, 1, &frame, 1);
    assert_int_equal(bed->toe_received[0], 1);
    assert_int_equal(read_counter(bed, LAG_COUNT_RX_DROPPED1), 1);
}

/* A segment of a TCP connection, with an acknowledgement number. */
static struct frame_tx segment_of(bool is_v6, uint16_t remote_port,
                                  uint32_t ack)
{
    struct frame_tx frame = {0};
    uint8_t *l3 = frame.head + ETH_LEN;
    uint8_t *tcp = l3 + (is_v6 ? (size_t)IPV6_LEN : (size_t)IPV4_LEN);

    put_be16(frame.head + ETH_TYPE, is_v6 ? ETHERTYPE_IPV6 : ETHERTYPE_IPV4);
    l3[is_v6 ? (int)IPV6_NEXT_HEADER : (int)IPV4_PROTOCOL] = IP_PROTOCOL_TCP;
    put_be16(tcp, 7);
    put_be16(tcp + 2, remote_port);
    put_be32(tcp + 8, ack);
    frame.head_len = (uint16_t)(tcp + 20 - frame.head);
    return frame;
}

static void test_lag_keeps_a_tcp_connection_on_one_member(void **state)
{
    struct bed *bed = *state;
    struct frame_sink sink = hw_lag_sink(&bed->lag, 0);
    unsigned int both[2] = {0, 0};

    switch_on(bed, LAG_MODE_DISTRIBUTE, false);
    for (unsigned int is_v6 = 0; is_v6 < 2; is_v6++) {
        for (uint16_t port = 1000; port < 1032; port++) {
            unsigned int before[2] = {bed->members[0].taken,
                                      bed->members[1].taken};

            bed->members[0].room = bed->members[1].room = 16;
            for (uint32_t i = 0; i < 16; i++) {
                struct frame_tx frame =
                    segment_of(is_v6 != 0, port, i * 0x01234567);

                assert_int_equal(sink.send(sink.ctx, &frame, 1), 1);
            }
            for (unsigned int i = 0; i < 2; i++) {
                unsigned int sent = bed->members[i].taken - before[i];

                assert_true(sent == 0 || sent == 16);
                both[i] += sent;
            }
        }
    }
    assert_true(both[0] != 0 && both[1] != 0);
}

TEST_FIXTURE(setup, teardown)
