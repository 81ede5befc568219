/* SPDX-License-Identifier: BSD-2-Clause */
/* Registers, sleeping and waking, events, datagrams, shared queues. */
#include <stdarg.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "bed.h"
#include "lib/bytes.h"
#include "tests/test_fixture.h"

enum { PAGE = 0x1000 }; /* as in bed.c */

static int setup(void **state)
{
    struct bed *bed = bed_new();

    bed_start(bed);
    *state = bed;
    return 0;
}

static int teardown(void **state)
{
    bed_free(*state);
    return 0;
}

static const struct bed_path plain;

static void write_one(struct bed_side *side, uint64_t wr_id)
{
    bed_send(side, 0,
             &(struct bed_wr){.opcode = RNIC_WR_WRITE,
                              .flags = RNIC_WR_SIGNALED,
                              .wr_id = wr_id,
                              .len = 8});
}

static unsigned int count_wc(struct bed_side *side, uint8_t status)
{
    struct bed_wc wc;
    unsigned int n = 0;

    while (bed_poll(side, &wc)) {
        assert_int_equal(wc.status, status);
        n++;
    }
    return n;
}

/* ---- Registers. */

static void test_registers_report_identity_and_limits(void **state)
{
    struct bed *bed = *state;
    struct rnic *rnic = bed->side[0].rnic;

    assert_int_equal(rnic_read(rnic, A_RNIC_ID), 0x52444d01);
    assert_int_equal(rnic_read(rnic, A_RNIC_LIMITS0),
                     4 << 24 | 64 << 16 | 1026);
    assert_int_equal(rnic_read(rnic, A_RNIC_LIMITS1), 1024 << 16 | 1024);
    assert_int_equal(rnic_read(rnic, 0xffc), 0);
    assert_false(rnic_write(rnic, A_RNIC_ID, 1));
    assert_false(rnic_write(rnic, RNIC_COUNTER_BASE, 1));
    assert_false(rnic_write(rnic, 0xffc, 1));
}

static void test_a_hart_is_enabled_with_good_rings_only(void **state)
{
    static const uint32_t bad[][2] = {
        {A_RNIC_HART_PAGE_LO, 0x80000020}, {A_RNIC_HART_PAGE_HI, 1},
        {A_RNIC_HART_CMD_LO, 0x7fffffc0},  {A_RNIC_HART_DB_HI, 0xffffffff},
        {A_RNIC_HART_EQ_LO, 0x802fffc0},   {A_RNIC_HART_SIZES, 0x060400},
        {A_RNIC_HART_SIZES, 0x060409},     {A_RNIC_HART_SIZES, 0x060f04},
        {A_RNIC_HART_SIZES, 0x0d0404},
    };
    static const uint32_t good[] = {0x80001000, 0, 0x80002000, 0, 0x80004000, 0,
                                    0x80005000, 0, 0x060404};
    struct bed *bed = *state;
    struct rnic *rnic = bed->side[0].rnic;

    for (size_t i = 0; i <= ARRAY_LEN(bad); i++) {
        assert_true(rnic_write(rnic, A_RNIC_CTRL, R_RNIC_CTRL_RESET_MASK));
        for (uint32_t n = 0; n < ARRAY_LEN(good); n++) {
            assert_true(rnic_write(rnic, A_RNIC_HART_PAGE_LO + 4 * n, good[n]));
        }
        if (i < ARRAY_LEN(bad)) {
            assert_true(rnic_write(rnic, bad[i][0], bad[i][1]));
            assert_int_equal(rnic_read(rnic, bad[i][0]), bad[i][1]);
        }
        assert_true(rnic_write(rnic, A_RNIC_HART_ENABLE, 1));
        assert_int_equal(rnic_read(rnic, A_RNIC_HART_ENABLE),
                         i == ARRAY_LEN(bad));
    }
}

static void test_reset_clears_all_state(void **state)
{
    struct bed *bed = *state;
    struct bed_side *side = &bed->side[0];

    bed_connect(bed, 0, &plain);
    write_one(side, 1);
    bed_run(bed);
    assert_int_not_equal(bed_counter(side, RNIC_COUNT_TX_PACKETS), 0);
    assert_true(rnic_write(side->rnic, A_RNIC_CTRL, R_RNIC_CTRL_RESET_MASK));
    assert_int_equal(rnic_read(side->rnic, A_RNIC_CTRL), 0);
    assert_int_equal(rnic_read(side->rnic, A_RNIC_HART_ENABLE), 0);
    assert_int_equal(bed_counter(side, RNIC_COUNT_TX_PACKETS), 0);
    assert_int_equal(side->timer_ns, DEV_NO_DEADLINE);
    assert_false(side->irq);
}

/* ---- Sleeping and waking. */

static void test_only_a_sleeping_rnic_needs_a_kick(void **state)
{
    struct bed *bed = *state;
    struct bed_side *side = &bed->side[0];
    unsigned int kicks;

    bed_connect(bed, 0, &plain);
    bed_settle(bed);
    kicks = side->kicks;
    write_one(side, 1);
    assert_int_equal(side->kicks, kicks + 1);
    bed_settle(bed);
    assert_int_equal(get_le32(side->dram + PAGE + RNIC_PAGE_ASLEEP), 1);
    /* The RNIC is awake: entries are seen without a kick. */
    put_le32(side->dram + PAGE + RNIC_PAGE_ASLEEP, 0);
    write_one(side, 2);
    assert_int_equal(side->kicks, kicks + 1);
    rnic_run(side->rnic);
    bed_settle(bed);
    assert_int_equal(count_wc(side, RNIC_WC_SUCCESS), 2);
}

static void test_only_an_armed_hart_is_interrupted_once(void **state)
{
    struct bed *bed = *state;
    struct bed_side *side = &bed->side[0];

    bed_connect(bed, 0, &plain);
    write_one(side, 1);
    bed_settle(bed);
    assert_false(side->irq);
    put_le32(side->dram + PAGE + RNIC_PAGE_ARMED, 1);
    write_one(side, 2);
    write_one(side, 3);
    bed_settle(bed);
    assert_true(side->irq);
    assert_int_equal(rnic_read(side->rnic, A_RNIC_IRQ_STATUS), 1);
    assert_int_equal(get_le32(side->dram + PAGE + RNIC_PAGE_ARMED), 0);
    assert_true(rnic_write(side->rnic, A_RNIC_IRQ_STATUS, 1));
    assert_false(side->irq);
    write_one(side, 4);
    bed_settle(bed);
    assert_false(side->irq);
    /* A command's status and a link event also wake the hart. */
    put_le32(side->dram + PAGE + RNIC_PAGE_ARMED, 1);
    assert_int_equal(bed_command(side, RNIC_CMD_NOP, 0, NULL, NULL),
                     RNIC_CMD_OK);
    assert_true(side->irq);
    assert_true(rnic_write(side->rnic, A_RNIC_IRQ_STATUS, 1));
    put_le32(side->dram + PAGE + RNIC_PAGE_ARMED, 1);
    rnic_link_changed(side->rnic, 1, true);
    assert_true(side->irq);
    assert_true(rnic_write(side->rnic, A_RNIC_IRQ_ENABLE, 0));
    assert_false(side->irq);
}

/* A hart may wait only for entries that do more than free its buffers. */
static void test_an_acknowledged_write_does_not_wake_a_hart(void **state)
{
    struct bed *bed = *state;
    struct bed_side *side = &bed->side[0];

    bed_connect(bed, 0, &plain);
    put_le32(side->dram + PAGE + RNIC_PAGE_ARMED, RNIC_ARMED_URGENT);
    write_one(side, 1);
    bed_settle(bed);
    assert_int_equal(count_wc(side, RNIC_WC_SUCCESS), 1);
    assert_false(side->irq);
    assert_int_equal(get_le32(side->dram + PAGE + RNIC_PAGE_ARMED),
                     RNIC_ARMED_URGENT);
    assert_int_equal(bed_command(side, RNIC_CMD_NOP, 0, NULL, NULL),
                     RNIC_CMD_OK);
    assert_true(side->irq);
    assert_int_equal(get_le32(side->dram + PAGE + RNIC_PAGE_ARMED), 0);
    /* A failed completion is urgent. */
    assert_true(rnic_write(side->rnic, A_RNIC_IRQ_STATUS, 1));
    put_le32(side->dram + PAGE + RNIC_PAGE_ARMED, RNIC_ARMED_URGENT);
    bed_send(side, 0,
             &(struct bed_wr){.opcode = RNIC_WR_WRITE,
                              .flags = RNIC_WR_SIGNALED,
                              .len = 8,
                              .lkey = 0xffff00});
    bed_settle(bed);
    assert_true(side->irq);
}

static void test_rings_that_claim_too_much_are_skipped(void **state)
{
    struct bed *bed = *state;
    struct bed_side *side = &bed->side[0];
    struct bed_event event;

    put_le32(side->dram + PAGE + RNIC_PAGE_DB_PI, 1000);
    put_le32(side->dram + PAGE + RNIC_PAGE_CMD_PI, 2000);
    rnic_run(side->rnic);
    assert_true(bed_poll_event(side, &event));
    assert_int_equal(event.type, RNIC_EVENT_MEMORY_ERROR);
    assert_true(bed_poll_event(side, &event));
    assert_int_equal(event.type, RNIC_EVENT_MEMORY_ERROR);
    assert_false(bed_poll_event(side, &event));
    side->cmd_pi = 2000;
    assert_int_equal(bed_command(side, RNIC_CMD_NOP, 0, NULL, NULL),
                     RNIC_CMD_OK);
}

static void test_a_full_event_queue_drops_events(void **state)
{
    struct bed *bed = *state;
    struct bed_side *side = &bed->side[0];
    struct bed_event event;
    unsigned int n = 0;

    for (unsigned int i = 0; i < 100; i++) {
        rnic_link_changed(side->rnic, 0, i % 2);
    }
    while (bed_poll_event(side, &event)) {
        assert_int_equal(event.type, RNIC_EVENT_LINK);
        assert_int_equal(event.info, n % 2);
        n++;
    }
    assert_int_equal(n, 1u << BED_EQ_LOG2);
    assert_int_equal(side->rnic->state.objects.eqs[0].dropped, 100 - n);
}

/* ---- Messages of minimal and maximal lengths. */

static void test_every_mtu_and_the_lengths_around_it(void **state)
{
    struct bed *bed = *state;
    struct bed_side *a = &bed->side[0], *b = &bed->side[1];

    for (uint8_t mtu = 1; mtu <= 5; mtu++) {
        uint32_t bytes = 128u << mtu;
        const uint32_t lens[] = {
            0, 1, 2, 3, bytes - 1, bytes, bytes + 1, 2 * bytes, 2 * bytes + 3};
        unsigned int n = mtu - 1;

        bed_connect(bed, n, &(struct bed_path){.mtu = mtu, .psn = 0xfffffe});
        for (size_t i = 0; i < ARRAY_LEN(lens); i++) {
            uint32_t at = (uint32_t)i * 16384;
            struct bed_wc wc;

            bed_fill(a, at, lens[i] + 8, (uint32_t)i);
            bed_fill(b, at + (1 << 20), lens[i], (uint32_t)i + 9);
            bed_recv(b, n, i, at, lens[i]);
            bed_post(a, n,
                     &(struct bed_wr){
                         .opcode = RNIC_WR_SEND, .offset = at, .len = lens[i]});
            bed_send(a, n,
                     &(struct bed_wr){.opcode = RNIC_WR_READ,
                                      .flags = RNIC_WR_SIGNALED,
                                      .offset = at + (1 << 20),
                                      .remote = at + (1 << 20),
                                      .len = lens[i]});
            bed_settle(bed);
            assert_true(bed_poll(b, &wc));
            assert_int_equal(wc.len, lens[i]);
            assert_int_equal(count_wc(a, RNIC_WC_SUCCESS), 1);
            assert_true(bed_same(bed, at, at, lens[i]));
            assert_true(bed_same(bed, at + (1 << 20), at + (1 << 20), lens[i]));
        }
    }
}

static void test_keys_reach_all_64_bits(void **state)
{
    struct bed *bed = *state;
    uint8_t args[RNIC_CMD_LEN] = {0};
    uint8_t *wqe = bed->side[0].dram + 0x20000;

    bed_connect(bed, 0, &plain);
    put_le64(args + RNIC_MR_VA, UINT64_C(0xffff888012345678));
    put_le64(args + RNIC_MR_LENGTH, 4096);
    put_le64(args + RNIC_MR_DRAM, BED_DATA_ADDR + 4096);
    args[RNIC_MR_ACCESS] = RNIC_ACCESS_REMOTE_WRITE;
    args[RNIC_MR_VARIANT] = 3;
    assert_int_equal(
        bed_command(&bed->side[1], RNIC_CMD_MR_CREATE, 1023, args, NULL),
        RNIC_CMD_OK);
    bed_fill(&bed->side[0], 0, 4096, 5);
    bed_post(&bed->side[0], 0,
             &(struct bed_wr){.opcode = RNIC_WR_WRITE,
                              .flags = RNIC_WR_SIGNALED,
                              .rkey = 1023 << 8 | 3,
                              .len = 4096});
    put_le64(wqe + RNIC_SWQE_REMOTE_ADDR, UINT64_C(0xffff888012345678));
    bed_ring(&bed->side[0], 0);
    bed_settle(bed);
    assert_int_equal(count_wc(&bed->side[0], RNIC_WC_SUCCESS), 1);
    assert_true(bed_same(bed, 0, 4096, 4096));
}

/* ---- Events. */

static void test_drained_comes_after_the_last_completion(void **state)
{
    struct bed *bed = *state;
    struct bed_side *side = &bed->side[0];
    struct bed_event event;

    bed_connect(bed, 0, &plain);
    write_one(side, 1);
    write_one(side, 2);
    assert_int_equal(
        bed_command(side, RNIC_CMD_DRAIN, bed_qpn(side, 0), NULL, NULL),
        RNIC_CMD_OK);
    assert_false(bed_poll_event(side, &event));
    bed_settle(bed);
    assert_true(bed_poll_event(side, &event));
    assert_int_equal(event.type, RNIC_EVENT_QP_DRAINED);
    assert_int_equal(event.index, bed_qpn(side, 0));
    assert_int_equal(count_wc(side, RNIC_WC_SUCCESS), 2);
}

static void test_a_full_completion_queue_ends_its_pairs(void **state)
{
    struct bed *bed = *state;
    struct bed_side *side = &bed->side[0];
    struct bed_event event;
    unsigned int overflows = 0, fatal = 0;

    bed_connect(bed, 0, &plain);
    bed_connect(bed, 1, &plain);
    for (unsigned int i = 0; i < (1u << BED_CQ_LOG2) + 1; i++) {
        write_one(side, i);
        bed_settle(bed);
    }
    while (bed_poll_event(side, &event)) {
        overflows += event.type == RNIC_EVENT_CQ_OVERFLOW;
        fatal += event.type == RNIC_EVENT_QP_FATAL;
    }
    assert_int_equal(overflows, 1);
    assert_int_equal(fatal, 2);
    assert_int_equal(bed_counter(side, RNIC_COUNT_CQ_OVERFLOWS), 1);
    assert_int_equal(bed_state(side, 1), RNIC_QPS_ERROR);
    assert_int_equal(count_wc(side, RNIC_WC_SUCCESS), 1u << BED_CQ_LOG2);
}

/* The event comes once, but each loss ends the pairs: the queue may have
 * overflowed before, with those of iWARP for example. */
static void test_a_queue_that_overflows_again_ends_its_pairs(void **state)
{
    struct bed *bed = *state;
    struct bed_side *side = &bed->side[0];

    bed_connect(bed, 0, &plain);
    side->rnic->state.objects.cqs[0].overflowed = true;
    for (unsigned int i = 0; i < (1u << BED_CQ_LOG2) + 1; i++) {
        write_one(side, i);
        bed_settle(bed);
    }
    assert_int_equal(bed_state(side, 0), RNIC_QPS_ERROR);
    assert_int_equal(bed_counter(side, RNIC_COUNT_CQ_OVERFLOWS), 0);
}

/* One receive queue for two pairs, with an event when it runs low. */
static void test_two_queue_pairs_share_a_receive_queue(void **state)
{
    struct bed *bed = *state;
    struct bed_side *a = &bed->side[0], *b = &bed->side[1];
    struct rdma_objects *o = &b->rnic->state.objects;
    struct bed_event event;
    struct bed_wc wc;

    bed_connect(bed, 0, &plain);
    bed_connect(bed, 1, &plain);
    /* Pretend that QP 1 was created with RQ 0. */
    o->qps[rdma_qp_slot(bed_qpn(b, 1))].rq = 0;
    o->rqs[1].users--;
    o->rqs[0].users++;
    o->rqs[0].low = 2;
    for (uint64_t i = 0; i < 4; i++) {
        bed_recv(b, 0, i, (uint32_t)i * 64, 64);
    }
    for (unsigned int i = 0; i < 4; i++) {
        bed_send(a, i % 2, &(struct bed_wr){.opcode = RNIC_WR_SEND, .len = 4});
        bed_settle(bed);
        assert_true(bed_poll(b, &wc));
        assert_int_equal(wc.wr_id, i);
        assert_int_equal(wc.qpn, bed_qpn(b, i % 2));
        assert_int_equal(bed_poll_event(b, &event), i == 2);
    }
    assert_int_equal(event.type, RNIC_EVENT_RQ_LOW);
    /* Receives that other QPs may still take are not flushed with one QP. */
    bed_recv(b, 0, 9, 0, 64);
    assert_int_equal(bed_modify(b, 1, RNIC_QPS_ERROR, &plain), RNIC_CMD_OK);
    assert_false(bed_poll(b, &wc));
}

/* ---- Datagrams. */

static void test_datagrams_carry_their_source(void **state)
{
    struct bed *bed = *state;
    struct bed_side *a = &bed->side[0], *b = &bed->side[1];
    const uint8_t *buf = bed_data(b, 0);
    struct bed_wc wc;

    bed_create_ud(a);
    bed_create_ud(b);
    bed_fill(a, 8192, 256, 1);
    bed_recv(b, BED_UD, 5, 0, 64 + 256);
    bed_send(a, BED_UD,
             &(struct bed_wr){.opcode = RNIC_WR_SEND,
                              .flags = RNIC_WR_SIGNALED,
                              .wr_id = 4,
                              .offset = 8192,
                              .len = 256});
    bed_run(bed);
    assert_true(bed_poll(a, &wc));
    assert_int_equal(wc.wr_id, 4);
    assert_int_equal(wc.status, RNIC_WC_SUCCESS);
    assert_true(bed_poll(b, &wc));
    assert_int_equal(wc.wr_id, 5);
    assert_int_equal(wc.len, 64 + 256);
    assert_true(bed_same(bed, 8192, 64, 256));
    assert_int_equal(get_le32(buf + RNIC_UD_SRC_QPN), 1);
    assert_int_equal(get_be32(buf + RNIC_UD_SRC_IP + 12), 0x0a000001);
    assert_int_equal(get_be32(buf + RNIC_UD_DST_IP + 12), 0x0a000002);
    assert_int_equal(get_le16(buf + RNIC_UD_VLAN), 0xffff);
    assert_int_equal(buf[RNIC_UD_SRC_MAC], 2);
}

static void test_a_datagram_without_a_buffer_is_dropped(void **state)
{
    struct bed *bed = *state;
    struct bed_side *a = &bed->side[0], *b = &bed->side[1];
    struct bed_wr wr = {.opcode = RNIC_WR_SEND, .len = 256};
    struct bed_wc wc;

    bed_create_ud(a);
    bed_create_ud(b);
    bed_send(a, BED_UD, &wr);
    bed_run(bed);
    bed_recv(b, BED_UD, 5, 0, 64 + 255); /* one byte too short */
    bed_send(a, BED_UD, &wr);
    bed_run(bed);
    assert_false(bed_poll(b, &wc));
    assert_int_equal(bed_counter(b, RNIC_COUNT_RX_DROPPED), 2);
    assert_int_equal(bed_state(b, BED_UD), RNIC_QPS_RTS);
}

static void test_datagrams_wait_for_a_full_port(void **state)
{
    struct bed *bed = *state;
    struct bed_side *a = &bed->side[0], *b = &bed->side[1];
    struct bed_wc wc;

    bed_create_ud(a);
    bed_create_ud(b);
    a->tx_room = 2;
    for (uint64_t i = 0; i < 5; i++) {
        bed_recv(b, BED_UD, i, (uint32_t)i * 512, 512);
        bed_post(a, BED_UD,
                 &(struct bed_wr){.opcode = RNIC_WR_SEND,
                                  .flags = RNIC_WR_SIGNALED,
                                  .wr_id = i,
                                  .len = 20});
    }
    bed_ring(a, BED_UD);
    bed_run(bed);
    assert_int_equal(count_wc(a, RNIC_WC_SUCCESS), 2);
    a->tx_room = UINT32_MAX;
    rnic_port_ready(a->rnic, 0);
    bed_run(bed);
    assert_int_equal(count_wc(a, RNIC_WC_SUCCESS), 3);
    for (uint64_t i = 0; i < 5; i++) {
        assert_true(bed_poll(b, &wc));
        assert_int_equal(wc.wr_id, i);
    }
}

static unsigned int take_nothing(void *ctx, const struct frame_tx *burst,
                                 unsigned int count)
{
    (void)burst;
    (void)count;
    ++*(unsigned int *)ctx;
    return 0;
}

/*
 * A port whose peer takes no frames for long does not hold up the other port.
 */
static void test_datagrams_do_not_wait_for_a_stuck_port(void **state)
{
    struct bed *bed = *state;
    struct bed_side *a = &bed->side[0], *b = &bed->side[1];
    struct frame_sink port0 = a->rnic->roce.sinks[0];
    unsigned int refused = 0;
    struct frame_sink stuck = {.ctx = &refused, .send = take_nothing};
    struct bed_wr to_0 = {
        .opcode = RNIC_WR_SEND, .flags = RNIC_WR_SIGNALED, .len = 20};
    struct bed_wr to_1 = to_0;
    struct bed_wc wc;

    to_1.neigh = 1;
    bed_create_ud(a);
    bed_create_ud(b);
    for (uint64_t i = 0; i < 3; i++) {
        bed_recv(b, BED_UD, i, 0, 512);
    }
    rnic_attach_port(a->rnic, 0, &stuck);
    bed_send(a, BED_UD, &to_0);
    bed_send(a, BED_UD, &to_1);
    bed_run(bed);
    assert_int_equal(refused, 1);
    assert_false(bed_poll(b, &wc));
    assert_true(bed_tick(bed));
    bed_run(bed);
    assert_int_equal(count_wc(a, RNIC_WC_SUCCESS), 2);
    assert_true(bed_poll(b, &wc)); /* the completion of port 1 */
    assert_false(bed_poll(b, &wc));
    /* From then on, no datagram waits for port 0. */
    bed_send(a, BED_UD, &to_0);
    bed_send(a, BED_UD, &to_1);
    bed_run(bed);
    assert_int_equal(count_wc(a, RNIC_WC_SUCCESS), 2);
    assert_true(bed_poll(b, &wc));
    assert_int_equal(refused, 1);
    /* The RNIC uses port 0 again when this port takes frames. */
    rnic_attach_port(a->rnic, 0, &port0);
    rnic_port_ready(a->rnic, 0);
    bed_send(a, BED_UD, &to_0);
    bed_settle(bed);
    assert_int_equal(count_wc(a, RNIC_WC_SUCCESS), 1);
    assert_true(bed_poll(b, &wc));
}

/* Each priority waits on its own.  Datagrams that wait too long are dropped. */
static void test_pfc_holds_up_datagrams_by_their_priority(void **state)
{
    struct bed *bed = *state;
    struct bed_side *a = &bed->side[0], *b = &bed->side[1];
    uint8_t paused = BIT(0) | BIT(3);
    struct bed_wr wr = {
        .opcode = RNIC_WR_SEND, .flags = RNIC_WR_SIGNALED, .len = 20};

    bed_create_ud(a);
    bed_create_ud(b);
    for (uint64_t i = 0; i < 6; i++) {
        bed_recv(b, BED_UD, i, 0, 512);
    }
    a->rnic->roce.sinks[0].paused = &paused;
    for (uint8_t i = 0; i < 3; i++) {
        wr.priority = i == 1 ? 3 : 4;
        bed_post(a, BED_UD, &wr);
    }
    bed_ring(a, BED_UD);
    bed_run(bed);
    assert_int_equal(count_wc(b, RNIC_WC_SUCCESS), 1);
    paused = 0;
    rnic_port_ready(a->rnic, 0);
    bed_run(bed);
    assert_int_equal(count_wc(b, RNIC_WC_SUCCESS), 2);
    assert_int_equal(count_wc(a, RNIC_WC_SUCCESS), 3);

    paused = BIT(3);
    for (uint8_t i = 0; i < 2; i++) {
        wr.priority = i == 0 ? 3 : 4;
        bed_send(a, BED_UD, &wr);
    }
    bed_run(bed);
    assert_int_equal(count_wc(b, RNIC_WC_SUCCESS), 0);
    assert_true(bed_tick(bed));
    bed_run(bed);
    /* The datagram of the other priority. */
    assert_int_equal(count_wc(b, RNIC_WC_SUCCESS), 1);
    assert_int_equal(count_wc(a, RNIC_WC_SUCCESS), 2);
    a->rnic->roce.sinks[0].paused = NULL;
}

/*
 * The limit is half a second for each pause.  It does not count from the first
 * pause, and does not restart when the port reports something.
 */
static void test_datagrams_wait_for_a_pause_but_not_without_end(void **state)
{
    struct bed *bed = *state;
    struct bed_side *a = &bed->side[0], *b = &bed->side[1];
    uint8_t paused = 0;
    struct bed_wr wr = {.opcode = RNIC_WR_SEND,
                        .flags = RNIC_WR_SIGNALED,
                        .len = 20,
                        .priority = 3};

    bed_create_ud(a);
    bed_create_ud(b);
    for (uint64_t i = 0; i < 6; i++) {
        bed_recv(b, BED_UD, i, 0, 512);
    }
    a->rnic->roce.sinks[0].paused = &paused;
    for (unsigned int i = 0; i < 3; i++) {
        bed->now_ns += 2000000000;
        paused = BIT(3);
        bed_send(a, BED_UD, &wr);
        bed_run(bed);
        assert_int_equal(count_wc(a, RNIC_WC_SUCCESS), 0);
        bed->now_ns += 1000;
        paused = 0;
        rnic_port_ready(a->rnic, 0);
        bed_run(bed);
        assert_int_equal(count_wc(b, RNIC_WC_SUCCESS), 1);
        assert_int_equal(count_wc(a, RNIC_WC_SUCCESS), 1);
    }
    paused = BIT(3);
    bed_send(a, BED_UD, &wr);
    for (unsigned int i = 0; i < 11; i++) {
        bed->now_ns += 100000000;
        rnic_port_ready(a->rnic, 0);
        bed_run(bed);
        if (a->timer_ns <= bed->now_ns) {
            assert_true(bed_tick(bed));
        }
    }
    /* The datagram was lost. */
    assert_int_equal(count_wc(a, RNIC_WC_SUCCESS), 1);
    assert_int_equal(count_wc(b, RNIC_WC_SUCCESS), 0);
    wr.neigh = 1;
    wr.priority = 0;
    bed_send(a, BED_UD, &wr);
    bed_run(bed);
    assert_int_equal(count_wc(b, RNIC_WC_SUCCESS), 1);
    a->rnic->roce.sinks[0].paused = NULL;
}

static void refuse_datagram(uint8_t priority, uint8_t dscp)
{
    struct bed *bed = bed_new();
    struct bed_side *a = &bed->side[0];
    struct bed_wc wc;

    bed_start(bed);
    bed_create_ud(a);
    bed_send(a, BED_UD,
             &(struct bed_wr){.opcode = RNIC_WR_SEND,
                              .len = 20,
                              .priority = priority,
                              .dscp = dscp});
    bed_run(bed);
    assert_true(bed_poll(a, &wc));
    assert_int_equal(wc.status, RNIC_WC_LOCAL_OPERATION);
    assert_int_equal(bed_state(a, BED_UD), RNIC_QPS_ERROR);
    bed_free(bed);
}

static void test_invalid_datagrams_are_refused(void **state)
{
    struct bed *bed = *state;
    struct bed_side *a = &bed->side[0];
    struct bed_wc wc;

    refuse_datagram(8, 0);
    refuse_datagram(0, 64);
    bed_create_ud(a);
    bed_post(a, BED_UD,
             &(struct bed_wr){.opcode = RNIC_WR_SEND,
                              .flags = RNIC_WR_SIGNALED,
                              .wr_id = 1,
                              .len = 20});
    bed_send(a, BED_UD,
             &(struct bed_wr){.opcode = RNIC_WR_SEND, .wr_id = 2, .len = 257});
    bed_run(bed);
    assert_true(bed_poll(a, &wc));
    assert_int_equal(wc.wr_id, 1);
    assert_int_equal(wc.status, RNIC_WC_SUCCESS);
    assert_true(bed_poll(a, &wc));
    assert_int_equal(wc.wr_id, 2);
    assert_int_equal(wc.status, RNIC_WC_LOCAL_LENGTH);
    assert_int_equal(bed_state(a, BED_UD), RNIC_QPS_ERROR);
}

/* Doorbells of a connected pair are among them; none of those is lost. */
static void test_doorbells_of_no_slot_are_skipped(void **state)
{
    struct bed *bed = *state;
    struct bed_side *side = &bed->side[0];
    struct bed_event event;
    struct bed_wc wc;
    struct rnic *rnic = side->rnic;
    struct rdma_objects *before = malloc(sizeof(*before));

    bed_connect(bed, 0, &plain);
    bed_run(bed);
    assert_non_null(before);
    memcpy(before, &rnic->state.objects, sizeof(*before));
    for (uint32_t slot = RDMA_QPS; slot < 2048; slot++) {
        bed_ring_number(side, slot);
        bed_ring_number(side, (bed_qpn(side, 0) & ~2047u) | slot);
        bed_ring_number(side, 0xff000000u | slot);
    }
    bed_run(bed);
    assert_memory_equal(before, &rnic->state.objects, sizeof(*before));
    assert_false(bed_poll(side, &wc));
    assert_false(bed_poll_event(side, &event));
    bed_send(side, 0,
             &(struct bed_wr){.opcode = RNIC_WR_WRITE,
                              .flags = RNIC_WR_SIGNALED,
                              .wr_id = 5,
                              .len = 64,
                              .remote = 4096});
    bed_run(bed);
    assert_true(bed_poll(side, &wc));
    assert_int_equal(wc.status, RNIC_WC_SUCCESS);
    assert_int_equal(wc.wr_id, 5);
    free(before);
}

/* ---- Loading. */

static void test_an_invalid_state_is_refused(void **state)
{
    struct bed *bed = *state;
    struct bed_side *side = &bed->side[0];
    struct rnic_state *good = malloc(sizeof(*good));
    uint32_t slot = rdma_qp_slot(bed_qpn(side, 0));

    bed_connect(bed, 0, &plain);
    *good = side->rnic->state;
#define REFUSES(field, value)                                                  \
    do {                                                                       \
        side->rnic->state = *good;                                             \
        side->rnic->state.field = (value);                                     \
        assert_false(rnic_state_loaded(side->rnic));                           \
        assert_int_equal(rnic_read(side->rnic, A_RNIC_HART_ENABLE), 0);        \
    } while (0)
    REFUSES(harts[0].page, 1);
    REFUSES(harts[0].cmd_size_log2, 9);
    REFUSES(roce.window, 0);
    REFUSES(objects.qps[slot].state, 5);
    REFUSES(objects.qps[slot].type, VERBS_QP_TYPES);
    REFUSES(objects.qps[slot].qpn, slot + 1);
    REFUSES(objects.qps[slot].qpn, slot | 1024);
    REFUSES(objects.qps[slot].pd, 300);
    REFUSES(objects.qps[slot].rq, 1025);
    REFUSES(objects.qps[slot].rq, 1026);
    REFUSES(objects.qps[slot].send_cq, 99);
    REFUSES(objects.qps[slot].sq_pi, 5000);
    REFUSES(objects.qps[slot].sq_next, 1);
    REFUSES(objects.cqs[0].hart, 9);
    REFUSES(objects.mrs[5].pd, 999);
    REFUSES(objects.neighs[0].port, 2);
    REFUSES(roce.qps[slot].path.neigh, 5000);
    REFUSES(roce.qps[slot].path.path_mtu, 0);
    REFUSES(roce.qps[slot].req.sent_tail, 1);
    REFUSES(roce.qps[slot].req.una_psn, 7);
    REFUSES(roce.qps[slot].req.tx_psn, 7);
    REFUSES(roce.qps[slot].resp.read_tail, 1);
    REFUSES(roce.qps[slot].resp.read_packet, 3);
    REFUSES(roce.qps[slot].resp.message, 9);
    side->rnic->state = *good;
    assert_true(rnic_state_loaded(side->rnic));
    free(good);
}

TEST_FIXTURE(setup, teardown)
