/* SPDX-License-Identifier: BSD-2-Clause */
/* PAUSE and PFC: the port's core, with the test as firmware, RNIC and link. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "lib/regfields.h"
#include "hw-model/port/hw_port.h"
#include "hw-model/regs/port.h"
#include "lib/bytes.h"
#include "net/wire/mac_control.h"
#include "tests/test_fixture.h"
#include "tests/unit/hw-model/port/port_bed.h"
#include "tests/unit/net/wire/golden_mac_control.h"

enum {
    BUF = 0x1000,
    TX_LOG2 = 7,
    MAX_SENT = 256,
    MAX_QUEUED = 32,
    FRAME = 64,
    RAW = 0x11, /* values that mark the sender of a frame */
    RNIC = 0xee,
};

struct item {
    uint8_t mark, priority, number;
};

struct world {
    struct hw_port port;
    struct test_env env;
    uint8_t *dram;
    struct item sent[MAX_SENT];
    unsigned int num_sent, link_room;
    /* The frames of the RNIC, which holds back those of paused priorities. */
    struct item queue[MAX_QUEUED];
    unsigned int num_queued;
    bool is_heedless; /* it offers frames of paused priorities, too */
    unsigned int rnic_ready, rnic_frames;
    uint32_t tx_pi;
};

static unsigned int link_send(void *ctx, const struct frame_tx *burst,
                              unsigned int count)
{
    struct world *w = ctx;
    unsigned int n = MIN(count, w->link_room);

    for (unsigned int i = 0; i < n; i++) {
        const uint8_t *body = burst[i].num_pieces != 0 ? burst[i].pieces[0].data
                                                       : burst[i].head + 18;

        w->sent[w->num_sent++] =
            (struct item){body[0], burst[i].priority, body[1]};
    }
    w->link_room -= n;
    return n;
}

static void rnic_rx(void *ctx, const struct frame_rx *frames, unsigned int n)
{
    (void)frames;
    ((struct world *)ctx)->rnic_frames += n;
}

static void rnic_offer(struct world *w)
{
    for (unsigned int i = 0; i < w->num_queued;) {
        struct frame_tx frame = {
            .priority = w->queue[i].priority,
            .head_len = FRAME,
        };

        frame.head[18] = RNIC;
        frame.head[19] = w->queue[i].number;
        if (!w->is_heedless && w->port.held >> frame.priority & 1) {
            i++;
        } else if (hw_port_tx(&w->port, &frame, 1) == 1) {
            w->num_queued--;
            memmove(&w->queue[i], &w->queue[i + 1],
                    (w->num_queued - i) * sizeof(w->queue[0]));
        } else {
            return;
        }
    }
}

static void rnic_ready(void *ctx)
{
    struct world *w = ctx;

    w->rnic_ready++;
    rnic_offer(w);
}

static void link_changed(void *ctx, bool is_up)
{
    (void)ctx;
    (void)is_up;
}

static uint32_t read_reg(struct world *w, uint32_t offset)
{
    return port_bed_read(&w->port, offset);
}

static void settle_port(struct world *w)
{
    port_bed_settle(&w->port, &w->env);
}

static void write_reg(struct world *w, uint32_t offset, uint32_t value)
{
    port_bed_write(&w->port, &w->env, offset, value);
}

static uint64_t read_counter(const struct world *w, unsigned int n)
{
    return w->port.counters[n];
}

static void set_speed(struct world *w, uint32_t mbps)
{
    struct phy_partner partner = w->port.partner;

    partner.speed_mbps = mbps;
    hw_port_set_partner(&w->port, &partner);
    write_reg(w, A_PORT_LINK_CTRL,
              FIELD_MAKE(PORT_LINK_CTRL, ENABLE, 1) |
                  FIELD_MAKE(PORT_LINK_CTRL, FEC, PORT_FEC_FC) |
                  FIELD_MAKE(PORT_LINK_CTRL, SPEED_MBPS, mbps));
}

static int setup(void **state)
{
    struct world *w = calloc(1, sizeof(*w));
    struct hw_port_config config = {
        .ops = {.ctx = w,
                .rnic_rx = rnic_rx,
                .rnic_ready = rnic_ready,
                .link_changed = link_changed},
        .link = {.ctx = w, .send = link_send},
    };

    w->dram = calloc(1, DRAM_BYTES);
    w->link_room = MAX_SENT;
    config.env = test_env_init(&w->env, w->dram, DRAM_BYTES);
    w->env.now_ns = 1000000;
    hw_port_init(&w->port, &config);
    hw_port_set_cable(&w->port, true);
    port_bed_rings(&w->port, &w->env, TX_LOG2, BUF);
    write_reg(w, A_PORT_CTRL,
              R_PORT_CTRL_RX_ENABLE_MASK | R_PORT_CTRL_TX_ENABLE_MASK |
                  R_PORT_CTRL_MULTICAST_ALL_MASK | R_PORT_CTRL_ROCE_V2_MASK);
    set_speed(w, 25000);
    write_reg(w, A_PORT_PAUSE, 0xff);
    *state = w;
    return 0;
}

static int teardown(void **state)
{
    struct world *w = *state;

    free(w->dram);
    free(w);
    return 0;
}

/* ---- Events of the port. */

static void receive_control(struct world *w, const uint8_t *body, size_t len)
{
    uint8_t frame[64] = {0x01, 0x80, 0xc2, 0x00, 0x00, 0x01, 0x00,
                         0x01, 0x01, 0x01, 0x01, 0x01, 0x88, 0x08};
    struct frame_rx rx = {.data = frame, .len_bytes = (uint32_t)(14 + len)};

    memcpy(frame + 14, body, len);
    hw_port_rx(&w->port, &rx, 1);
    settle_port(w);
}

static void receive_pfc(struct world *w, uint8_t priorities, uint16_t quanta)
{
    struct mac_control control = {.opcode = MAC_CONTROL_OP_PFC,
                                  .priorities = priorities};
    uint8_t body[MAC_CONTROL_LEN];

    for (unsigned int i = 0; i < 8; i++) {
        control.quanta[i] = quanta;
    }
    mac_control_emit(&control, body);
    receive_control(w, body, sizeof(body));
}

static void send_raw(struct world *w, uint8_t priority, uint8_t number)
{
    uint32_t slot = w->tx_pi & ((1u << TX_LOG2) - 1);
    uint8_t *buf = w->dram + TX_BUF + slot * FRAME;
    uint8_t *txd = w->dram + TX_RING + slot * PORT_TXD_LEN;

    memset(buf, 0, FRAME);
    buf[18] = RAW;
    buf[19] = number;
    put_le64(txd + PORT_TXD_ADDR, TEST_DRAM_BASE + TX_BUF + slot * FRAME);
    put_le32(txd + PORT_TXD_LENGTH, FRAME);
    txd[PORT_TXD_PRIORITY] = priority;
    put_le32(w->dram + PAGE + PORT_PAGE_TX_PI, ++w->tx_pi);
    if (get_le32(w->dram + PAGE + PORT_PAGE_ASLEEP) != 0) {
        write_reg(w, A_PORT_KICK, 1);
    }
}

static void send_rnic(struct world *w, uint8_t priority, uint8_t number)
{
    w->queue[w->num_queued++] = (struct item){RNIC, priority, number};
    rnic_offer(w);
    settle_port(w);
}

static void wait_until(struct world *w, uint64_t now_ns)
{
    w->env.now_ns = now_ns;
    if (w->env.deadline_ns <= now_ns) {
        w->env.deadline_ns = DEV_NO_DEADLINE;
        hw_port_timer(&w->port);
    }
    settle_port(w);
}

static uint32_t tx_ci(const struct world *w)
{
    return get_le32(w->dram + PAGE + PORT_PAGE_TX_CI);
}

static void expect_sent(struct world *w, size_t count, const struct item *items)
{
    assert_int_equal(w->num_sent, count);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(w->sent[i].mark, items[i].mark);
        assert_int_equal(w->sent[i].priority, items[i].priority);
        assert_int_equal(w->sent[i].number, items[i].number);
    }
    w->num_sent = 0;
}

/* ---- Tests. */

static void test_pause_holds_a_priority_and_lets_others_pass(void **state)
{
    struct world *w = *state;

    receive_pfc(w, BIT(3), 100);
    assert_int_equal(read_reg(w, A_PORT_PAUSED), BIT(3));
    send_rnic(w, 3, 0);
    send_rnic(w, 3, 1);
    send_raw(w, 3, 0);
    send_raw(w, 5, 1);
    send_raw(w, 3, 2);
    send_raw(w, 0, 3);
    send_rnic(w, 4, 2);
    expect_sent(w, 3, (struct item[]){{RAW, 5, 1}, {RAW, 0, 3}, {RNIC, 4, 2}});
    /* The first frame still belongs to the port. */
    assert_int_equal(tx_ci(w), 0);
    receive_pfc(w, BIT(3), 0); /* XON */
    assert_int_equal(read_reg(w, A_PORT_PAUSED), 0);
    expect_sent(
        w, 4,
        (struct item[]){{RNIC, 3, 0}, {RNIC, 3, 1}, {RAW, 3, 0}, {RAW, 3, 2}});
    assert_int_equal(tx_ci(w), 4);
    assert_int_equal(w->env.deadline_ns, DEV_NO_DEADLINE);
    assert_int_equal(read_counter(w, PORT_COUNT_TX_RAW), 4);
    assert_int_equal(read_counter(w, PORT_COUNT_TX_RNIC), 3);
}

/*
 * As scapy's get_pause_time() computes: 0x1234 quanta are 0.238592 s at 10
 * Mb/s.
 */
static void test_pause_lasts_its_quanta_at_the_port_s_speed(void **state)
{
    static const struct {
        uint32_t mbps;
        uint64_t ns;
    } rows[] = {{10000, 238592}, {25000, 95437}};
    struct world *w = *state;

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        uint64_t start_ns = w->env.now_ns;

        set_speed(w, rows[i].mbps);
        receive_control(w, mac_control_pfc, sizeof(mac_control_pfc));
        assert_int_equal(read_reg(w, A_PORT_PAUSED), 0x21);
        assert_int_equal(w->env.deadline_ns, start_ns + rows[i].ns);
        send_rnic(w, 5, 0);
        wait_until(w, start_ns + rows[i].ns - 1);
        expect_sent(w, 0, NULL);
        wait_until(w, start_ns + rows[i].ns);
        assert_int_equal(read_reg(w, A_PORT_PAUSED), 0x01);
        expect_sent(w, 1, (struct item[]){{RNIC, 5, 0}});
        wait_until(w, start_ns + 1000000000);
        assert_int_equal(read_reg(w, A_PORT_PAUSED), 0);
    }
    assert_int_equal(read_counter(w, PORT_COUNT_PRIO_PAUSED_NS + 5),
                     238592 + 95437);
    assert_int_equal(read_counter(w, PORT_COUNT_PRIO_PAUSE + 5), 2);
    assert_int_equal(read_counter(w, PORT_COUNT_PRIO_PAUSE + 1), 0);
}

static void test_pause_is_renewed_and_shortened(void **state)
{
    struct world *w = *state;
    uint64_t start_ns = w->env.now_ns;

    receive_pfc(w, 0x01, 1000);
    assert_int_equal(w->env.deadline_ns, start_ns + 20480);
    wait_until(w, start_ns + 20000);
    receive_pfc(w, 0x01, 1000);
    assert_int_equal(w->env.deadline_ns, start_ns + 40480);
    wait_until(w, start_ns + 20480);
    assert_int_equal(read_reg(w, A_PORT_PAUSED), 1);
    receive_pfc(w, 0x01, 1);
    wait_until(w, start_ns + 20480 + 21);
    assert_int_equal(read_reg(w, A_PORT_PAUSED), 0);
    assert_int_equal(read_counter(w, PORT_COUNT_PRIO_PAUSED_NS), 20501);
}

/* Each pause ends at its own time, whichever came first. */
static void test_pause_of_two_priorities_ends_one_by_one(void **state)
{
    struct world *w = *state;
    uint64_t start_ns = w->env.now_ns;

    receive_pfc(w, BIT(2), 1000);
    receive_pfc(w, BIT(5), 3000);
    assert_int_equal(w->env.deadline_ns, start_ns + 20480);
    wait_until(w, start_ns + 20480);
    assert_int_equal(read_reg(w, A_PORT_PAUSED), BIT(5));
    assert_int_equal(w->env.deadline_ns, start_ns + 61440);
    receive_pfc(w, BIT(7), 1000);
    assert_int_equal(w->env.deadline_ns, start_ns + 40960);
    wait_until(w, start_ns + 40960);
    assert_int_equal(read_reg(w, A_PORT_PAUSED), BIT(5));
    wait_until(w, start_ns + 61440);
    assert_int_equal(read_reg(w, A_PORT_PAUSED), 0);
}

/* All interleavings of two priorities: no loss, no reordering. */
static void test_pause_keeps_the_order_inside_every_priority(void **state)
{
    struct world *w = *state;
    uint8_t next[2][8] = {{0}};
    uint32_t random = 1;

    for (unsigned int round = 0; round < 20; round++) {
        uint8_t number[2][8] = {{0}};

        w->num_sent = 0;
        w->link_room = MAX_SENT;
        w->num_queued = 0;
        memset(next, 0, sizeof(next));
        for (unsigned int i = 0; i < 60; i++) {
            uint8_t priority;

            random = random * 1664525 + 1013904223;
            priority = (uint8_t)(random >> 29);
            if (i % 7 == 3) {
                receive_pfc(w, (uint8_t)(random >> 8),
                            random >> 20 & 1 ? 500 : 0);
            }
            if (random >> 28 & 1 && w->num_queued < MAX_QUEUED) {
                send_rnic(w, priority, number[1][priority]++);
            } else {
                send_raw(w, priority, number[0][priority]++);
            }
            wait_until(w, w->env.now_ns + (random >> 24) * 16);
        }
        wait_until(w, w->env.now_ns + 10000000);
        assert_int_equal(w->num_sent, 60);
        for (unsigned int i = 0; i < w->num_sent; i++) {
            const struct item *item = &w->sent[i];

            assert_int_equal(item->number,
                             next[item->mark == RNIC][item->priority]++);
        }
        assert_int_equal(tx_ci(w), w->tx_pi);
    }
}

static void test_pause_frame_beyond_the_overtaking_limit_waits(void **state)
{
    struct world *w = *state;

    receive_pfc(w, BIT(1), 1000);
    for (uint8_t i = 0; i < HW_PORT_TX_AHEAD; i++) {
        send_raw(w, 1, i);
    }
    send_raw(w, 2, 99); /* the 65th frame is beyond the limit */
    expect_sent(w, 0, NULL);
    receive_pfc(w, BIT(1), 0);
    assert_int_equal(w->num_sent, HW_PORT_TX_AHEAD + 1);
    assert_int_equal(tx_ci(w), HW_PORT_TX_AHEAD + 1);
}

static void test_pause_is_honoured_as_firmware_sets_it(void **state)
{
    struct world *w = *state;

    write_reg(w, A_PORT_PAUSE, BIT(3));
    receive_pfc(w, 0xff, 1000);
    assert_int_equal(read_reg(w, A_PORT_PAUSED), BIT(3));
    receive_control(w, mac_control_pause, sizeof(mac_control_pause));
    assert_int_equal(read_reg(w, A_PORT_PAUSED), BIT(3));
    write_reg(w, A_PORT_PAUSE, 0);
    assert_int_equal(read_reg(w, A_PORT_PAUSED), 0);
    assert_int_equal(w->env.deadline_ns, DEV_NO_DEADLINE);
    receive_pfc(w, 0xff, 1000);
    assert_int_equal(read_reg(w, A_PORT_PAUSED), 0);
    write_reg(w, A_PORT_PAUSE, R_PORT_PAUSE_LINK_MASK);
    receive_pfc(w, 0xff, 1000);
    assert_int_equal(read_reg(w, A_PORT_PAUSED), 0);
    receive_control(w, mac_control_pause, sizeof(mac_control_pause));
    assert_int_equal(read_reg(w, A_PORT_PAUSED), 0xff);
    send_rnic(w, 7, 0);
    send_raw(w, 0, 0);
    expect_sent(w, 0, NULL);
    receive_control(w, (const uint8_t[46]){0x00, 0x01}, 46);
    assert_int_equal(w->num_sent, 2);
    assert_int_equal(read_counter(w, PORT_COUNT_PAUSE_RECEIVED), 3);
    assert_int_equal(read_counter(w, PORT_COUNT_PFC_RECEIVED), 3);
    assert_int_equal(read_reg(w, A_PORT_PAUSE), R_PORT_PAUSE_LINK_MASK);
}

/* This also holds with MULTICAST_ALL and for unknown opcodes. */
static void test_pause_frames_never_reach_firmware(void **state)
{
    static const uint8_t gate[46] = {0x00, 0x02};
    struct world *w = *state;
    uint8_t unicast[60] = {0x02, 0, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0x88, 0x08};
    struct frame_rx rx = {.data = unicast, .len_bytes = sizeof(unicast)};

    receive_pfc(w, 1, 1);
    receive_control(w, mac_control_pause, sizeof(mac_control_pause));
    receive_control(w, gate, sizeof(gate));
    receive_control(w, mac_control_pfc, 19); /* truncated */
    receive_control(w, mac_control_pfc, 1);
    receive_control(w, mac_control_pfc, 0);
    hw_port_rx(&w->port, &rx, 1); /* for another station */
    assert_int_equal(read_counter(w, PORT_COUNT_MAC_CONTROL_RECEIVED), 6);
    assert_int_equal(read_counter(w, PORT_COUNT_UNSUPPORTED_OPCODES), 4);
    assert_int_equal(read_counter(w, PORT_COUNT_RX_FILTERED_ADDRESS), 1);
    assert_int_equal(read_counter(w, PORT_COUNT_RX_RAW), 0);
    assert_int_equal(read_counter(w, PORT_COUNT_RX_DROPPED), 0);
    assert_int_equal(w->rnic_frames, 0);
    assert_int_equal(get_le32(w->dram + PAGE + PORT_PAGE_RX_PI), 0);
}

static void test_pause_a_damaged_frame_pauses_nothing(void **state)
{
    struct world *w = *state;
    uint8_t frame[60] = {0x01, 0x80, 0xc2, 0x00, 0x00, 0x01};
    struct frame_rx rx = {
        .data = frame, .len_bytes = sizeof(frame), .flags = FRAME_BAD_FCS};

    put_be16(frame + 12, ETHERTYPE_MAC_CONTROL);
    memcpy(frame + 14, mac_control_pfc, 46);
    hw_port_rx(&w->port, &rx, 1);
    assert_int_equal(read_reg(w, A_PORT_PAUSED), 0);
    assert_int_equal(read_counter(w, PORT_COUNT_MAC_CONTROL_RECEIVED), 0);
}

/*
 * Frames that the RNIC offers in spite of a pause are refused until the pause
 * changes.
 */
static void test_pause_refuses_frames_of_an_rnic_that_ignores_it(void **state)
{
    struct world *w = *state;
    struct frame_tx burst[3] = {{.priority = 2, .head_len = FRAME},
                                {.priority = 3, .head_len = FRAME},
                                {.priority = 2, .head_len = FRAME}};
    unsigned int ready;

    receive_pfc(w, BIT(3), 100);
    ready = w->rnic_ready;
    assert_int_equal(hw_port_tx(&w->port, burst, 3), 1);
    settle_port(w);
    assert_int_equal(hw_port_tx(&w->port, burst + 1, 1), 0);
    settle_port(w);
    assert_int_equal(w->rnic_ready, ready);
    send_raw(w, 0, 0); /* does not wait for the RNIC */
    assert_int_equal(w->num_sent, 2);
    receive_pfc(w, BIT(3), 0);
    assert_int_equal(w->rnic_ready, ready + 1);
}

static void test_pause_and_a_blocked_link(void **state)
{
    struct world *w = *state;

    w->link_room = 0;
    send_raw(w, 3, 0);
    send_raw(w, 2, 1);
    send_rnic(w, 3, 0);
    send_rnic(w, 1, 1);
    receive_pfc(w, BIT(3), 100);
    w->link_room = MAX_SENT;
    hw_port_link_ready(&w->port);
    settle_port(w);
    expect_sent(w, 2, (struct item[]){{RAW, 2, 1}, {RNIC, 1, 1}});
    receive_pfc(w, BIT(3), 0);
    assert_int_equal(w->num_sent, 2);
    assert_int_equal(tx_ci(w), 2);
}

static void test_pause_bad_descriptors_after_it_are_skipped(void **state)
{
    struct world *w = *state;

    receive_pfc(w, BIT(3), 100);
    send_raw(w, 3, 0);
    put_le32(w->dram + TX_RING + PORT_TXD_LEN + PORT_TXD_ADDR + 4, 0xffff);
    send_raw(w, 1, 1);
    put_le32(w->dram + TX_RING + 2 * PORT_TXD_LEN + PORT_TXD_LENGTH, 5);
    send_raw(w, 1, 2);
    assert_int_equal(w->num_sent, 2);
    receive_pfc(w, BIT(3), 0);
    assert_int_equal(w->num_sent, 3);
    assert_int_equal(tx_ci(w), 3);
}

static void test_pause_ends_with_the_link_and_with_a_reset(void **state)
{
    struct world *w = *state;

    receive_pfc(w, 0xff, 65535);
    send_rnic(w, 3, 0);
    send_raw(w, 3, 0);
    hw_port_set_cable(&w->port, false);
    settle_port(w);
    assert_int_equal(read_reg(w, A_PORT_PAUSED), 0);
    assert_int_equal(w->env.deadline_ns, DEV_NO_DEADLINE);
    /* Dropped, so that no frame waits without end. */
    assert_int_equal(w->num_queued, 0);
    assert_int_equal(read_counter(w, PORT_COUNT_TX_DROPPED_LINK), 2);
    assert_int_equal(tx_ci(w), 1);
    hw_port_set_cable(&w->port, true);
    settle_port(w);
    receive_pfc(w, 0xff, 65535);
    send_rnic(w, 3, 0);
    hw_port_reset(&w->port);
    settle_port(w);
    assert_int_equal(read_reg(w, A_PORT_PAUSED), 0);
    assert_int_equal(read_reg(w, A_PORT_PAUSE), 0);
    assert_int_equal(w->env.deadline_ns, DEV_NO_DEADLINE);
    assert_int_equal(w->num_queued, 0);
}

static void test_pause_continues_after_save_and_load(void **state)
{
    struct world *w = *state;
    struct hw_port saved;
    uint64_t start_ns = w->env.now_ns;

    receive_pfc(w, BIT(3), 1000);
    send_raw(w, 3, 0);
    send_raw(w, 2, 1);
    saved = w->port;
    memset(&w->port, 0xa5, sizeof(w->port));
    w->port = saved;
    w->env.deadline_ns = DEV_NO_DEADLINE;
    w->env.deferred = false;
    assert_true(hw_port_loaded(&w->port));
    settle_port(w);
    assert_int_equal(w->env.deadline_ns, start_ns + 20480);
    expect_sent(w, 1, (struct item[]){{RAW, 2, 1}});
    wait_until(w, start_ns + 20480);
    expect_sent(w, 1, (struct item[]){{RAW, 3, 0}});
    assert_int_equal(tx_ci(w), 2);
    /* An invalid state pauses for no longer than a frame can. */
    receive_pfc(w, BIT(3), 1000);
    w->port.pause_until_ns[3] = UINT64_MAX;
    assert_true(hw_port_loaded(&w->port));
    assert_int_equal(w->env.deadline_ns, w->env.now_ns + 1342157);
}

/* A partner that pauses a priority again and again causes a PFC storm. */
static void test_pause_that_lasts_too_long_loses_frames(void **state)
{
    struct world *w = *state;
    const uint64_t start_ns = w->env.now_ns;
    const uint64_t step_ns = 1000000;

    receive_pfc(w, BIT(3), 65535);
    send_raw(w, 3, 0);
    send_rnic(w, 3, 0);
    send_rnic(w, 4, 1);
    expect_sent(w, 1, (struct item[]){{RNIC, 4, 1}});
    while (w->env.now_ns < start_ns + 1999 * step_ns) {
        wait_until(w, w->env.now_ns + step_ns);
        receive_pfc(w, BIT(3), 65535);
    }
    assert_int_equal(w->num_queued, 1);
    assert_int_equal(tx_ci(w), 0);
    assert_int_equal(read_counter(w, PORT_COUNT_TX_DROPPED_TIMEOUT), 0);
    wait_until(w, start_ns + 2000 * step_ns);
    assert_int_equal(w->num_queued, 0);
    assert_int_equal(tx_ci(w), 1);
    assert_int_equal(read_counter(w, PORT_COUNT_TX_DROPPED_TIMEOUT), 2);
    assert_int_equal(read_reg(w, A_PORT_PAUSED), BIT(3));
    /*
     * This priority loses frames during the storm; other priorities lose none.
     */
    receive_pfc(w, BIT(3), 65535);
    send_raw(w, 3, 2);
    send_raw(w, 2, 3);
    send_rnic(w, 3, 4);
    send_rnic(w, 5, 5);
    expect_sent(w, 2, (struct item[]){{RAW, 2, 3}, {RNIC, 5, 5}});
    assert_int_equal(read_counter(w, PORT_COUNT_TX_DROPPED_TIMEOUT), 4);
    assert_int_equal(tx_ci(w), 3);
    /* After the storm, the next pause may have the full time again. */
    receive_pfc(w, BIT(3), 0);
    send_raw(w, 3, 6);
    expect_sent(w, 1, (struct item[]){{RAW, 3, 6}});
    receive_pfc(w, BIT(3), 65535);
    send_raw(w, 3, 7);
    wait_until(w, w->env.now_ns + step_ns);
    expect_sent(w, 0, NULL);
    assert_int_equal(read_counter(w, PORT_COUNT_TX_DROPPED_TIMEOUT), 4);
}

TEST_FIXTURE(setup, teardown)
