/* SPDX-License-Identifier: BSD-2-Clause */
/* Scheduling of queue pairs, and ports that are full. */
#include <stdarg.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "tests/test_fixture.h"
#include "raw.h"

enum { MTU = 256 };

static int setup(void **state)
{
    struct bed *bed = bed_new();

    bed_start(bed);
    for (unsigned int n = 0; n < BED_QPS; n++) {
        bed_connect(bed, n, &(struct bed_path){.mtu = 1});
    }
    *state = bed;
    return 0;
}

static int teardown(void **state)
{
    bed_free(*state);
    return 0;
}

static void run_deferred(struct bed_side *side)
{
    while (side->deferred) {
        side->deferred = false;
        rnic_run(side->rnic);
    }
}

/* All QPs have the same work: none gets far ahead of another. */
static void test_queue_pairs_share_a_port_fairly(void **state)
{
    struct bed *bed = *state;
    unsigned int sent[BED_QPS] = {0};
    struct raw_reply reply;

    for (unsigned int n = 0; n < BED_QPS; n++) {
        bed_send(&bed->side[1], n,
                 &(struct bed_wr){.opcode = RNIC_WR_WRITE, .len = 100 * MTU});
    }
    run_deferred(&bed->side[1]);
    while (raw_take(bed, &reply)) {
        unsigned int min = UINT32_MAX, max = 0;

        for (unsigned int n = 0; n < BED_QPS; n++) {
            sent[n] += reply.bth.dest_qp == bed_qpn(&bed->side[0], n);
            min = MIN(min, sent[n]);
            max = MAX(max, sent[n]);
        }
        assert_true(max - min <= 2 * ROCE_QUANTUM);
    }
    for (unsigned int n = 0; n < BED_QPS; n++) {
        assert_int_equal(sent[n], 100);
    }
}

static void test_sending_continues_where_a_full_port_stopped_it(void **state)
{
    struct bed *bed = *state;
    struct bed_side *side = &bed->side[1];
    struct raw_reply reply;
    uint32_t psn = RAW_PSN ^ 0x800000;

    side->tx_room = 5;
    bed_send(side, 0,
             &(struct bed_wr){.opcode = RNIC_WR_WRITE, .len = 50 * MTU});
    run_deferred(side);
    for (unsigned int n = 0; n < 50; n++) {
        if (!raw_take(bed, &reply)) {
            assert_int_equal(n % 5, 0);
            assert_true(side->blocked);
            side->tx_room = 5;
            rnic_port_ready(side->rnic, 0);
            run_deferred(side);
            assert_true(raw_take(bed, &reply));
        }
        assert_int_equal(reply.bth.psn, psn + n);
    }
    assert_int_equal(bed_counter(side, RNIC_COUNT_TX_PACKETS), 50);
    assert_int_equal(bed_counter(side, RNIC_COUNT_RETRANSMITTED), 0);
}

static void test_a_blocked_port_does_not_hold_up_the_other(void **state)
{
    struct bed *bed = bed_new();
    struct bed_side *side = &bed->side[1];

    (void)state;
    bed_start(bed);
    bed_connect(bed, 0, &(struct bed_path){.port = 0});
    bed_connect(bed, 1, &(struct bed_path){.port = 1});
    side->tx_room = 0;
    bed_send(side, 0, &(struct bed_wr){.opcode = RNIC_WR_WRITE, .len = 4});
    run_deferred(side);
    raw_expect_silence(bed);
    side->tx_room = UINT32_MAX;
    bed_send(side, 1, &(struct bed_wr){.opcode = RNIC_WR_WRITE, .len = 4});
    run_deferred(side);
    assert_int_equal(bed->side[0].in_tail - bed->side[0].in_head, 1);
    assert_int_equal(bed->side[0].in[bed->side[0].in_head].port, 1);
    bed_free(bed);
}

/* When a neighbour moves to another port, its waiting packets move too. */
static void test_a_neighbour_may_move_while_its_port_is_blocked(void **state)
{
    struct bed *bed = *state;
    struct bed_side *side = &bed->side[1];
    struct ip_addr theirs = ip_addr_from_v4(0x0a000001);
    uint8_t args[RNIC_CMD_LEN] = {0};
    struct raw_reply reply;

    side->tx_room = 0;
    bed_send(side, 0, &(struct bed_wr){.opcode = RNIC_WR_WRITE, .len = 4});
    run_deferred(side);
    side->tx_room = UINT32_MAX;
    args[RNIC_NEIGH_PORT] = 1;
    args[RNIC_NEIGH_VLAN] = args[RNIC_NEIGH_VLAN + 1] = 0xff;
    memcpy(args + RNIC_NEIGH_IP, theirs.bytes, 16);
    assert_int_equal(bed_command(side, RNIC_CMD_NEIGH_SET, 0, args, NULL),
                     RNIC_CMD_OK);
    run_deferred(side);
    assert_int_equal(bed->side[0].in[bed->side[0].in_head].port, 1);
    assert_true(raw_take(bed, &reply));
    assert_int_equal(reply.bth.opcode, RC_WRITE_ONLY);
}

static void test_no_ack_timer_expires_while_a_port_is_blocked(void **state)
{
    struct bed *bed = *state;
    struct bed_side *side = &bed->side[1];

    side->tx_room = 1;
    bed_send(side, 0,
             &(struct bed_wr){.opcode = RNIC_WR_WRITE, .len = 3 * MTU});
    run_deferred(side);
    for (unsigned int i = 0; i < 20; i++) {
        assert_true(bed_tick(bed));
    }
    assert_int_equal(bed_counter(side, RNIC_COUNT_TIMEOUTS), 0);
    side->tx_room = UINT32_MAX;
    rnic_port_ready(side->rnic, 0);
    bed_settle(bed);
    assert_true(bed_same(bed, 0, 0, 3 * MTU));
    assert_int_equal(bed_state(side, 0), RNIC_QPS_RTS);
}

static void test_acknowledgements_are_sent_before_data(void **state)
{
    struct bed *bed = *state;
    struct bed_side *side = &bed->side[1];
    struct raw_reply reply;

    side->tx_room = 0;
    for (unsigned int n = 1; n < BED_QPS; n++) {
        bed_send(side, n,
                 &(struct bed_wr){.opcode = RNIC_WR_WRITE, .len = 9 * MTU});
    }
    run_deferred(side);
    raw_send(bed, &(struct raw){.opcode = RC_WRITE_ONLY,
                                .psn = RAW_PSN,
                                .ack_requested = true});
    raw_expect_silence(bed);
    side->tx_room = UINT32_MAX;
    rnic_port_ready(side->rnic, 0);
    run_deferred(side);
    assert_true(raw_take(bed, &reply));
    assert_int_equal(reply.bth.opcode, RC_ACKNOWLEDGE);
}

static void test_a_destroyed_queue_pair_sends_nothing(void **state)
{
    struct bed *bed = *state;
    struct bed_side *side = &bed->side[1];

    side->tx_room = 0;
    bed_send(side, 0,
             &(struct bed_wr){.opcode = RNIC_WR_WRITE, .len = 9 * MTU});
    run_deferred(side);
    assert_int_equal(
        bed_command(side, RNIC_CMD_QP_DESTROY, bed_qpn(side, 0), NULL, NULL),
        RNIC_CMD_OK);
    side->tx_room = UINT32_MAX;
    rnic_port_ready(side->rnic, 0);
    run_deferred(side);
    while (bed_tick(bed)) {
    }
    raw_expect_silence(bed);
}

static void test_a_frame_received_inside_a_send_is_dropped(void **state)
{
    struct bed *bed = *state;
    struct bed_side *side = &bed->side[1];
    const uint8_t frame[64] = {0};

    side->rnic->busy = true; /* as when a sink calls it */
    rnic_rx(side->rnic, 0,
            &(struct frame_rx){.data = frame, .len_bytes = sizeof(frame)}, 1);
    side->rnic->busy = false;
    assert_int_equal(bed_counter(side, RNIC_COUNT_RX_DROPPED), 1);
    assert_int_equal(bed_counter(side, RNIC_COUNT_RX_PACKETS), 0);
}

/* PFC of the link partner stops one priority; the others continue. */
static void test_a_paused_priority_stops_no_other_priority(void **state)
{
    struct bed *bed = *state;
    struct bed_side *side = &bed->side[1];
    uint8_t paused = BIT(3);
    struct raw_reply reply;
    unsigned int sent[2] = {0};

    side->rnic->roce.sinks[0].paused = &paused;
    for (unsigned int n = 0; n < 2; n++) {
        uint32_t slot = bed_qpn(side, n) & 0x7ff;

        side->rnic->state.roce.qps[slot].path.priority = n == 0 ? 3 : 4;
        bed_send(side, n,
                 &(struct bed_wr){.opcode = RNIC_WR_WRITE, .len = 40 * MTU});
    }
    run_deferred(side);
    for (unsigned int i = 0; i < 40; i++) {
        assert_true(raw_take(bed, &reply));
        assert_int_equal(reply.bth.dest_qp, bed_qpn(&bed->side[0], 1));
    }
    raw_expect_silence(bed);
    /* Its ACK timer does not expire, however long the pause takes. */
    bed_send(side, 0, &(struct bed_wr){.opcode = RNIC_WR_WRITE, .len = 4});
    for (unsigned int i = 0; i < 20 && side->timer_ns != UINT64_MAX; i++) {
        assert_true(bed_tick(bed));
        while (raw_take(bed, &reply)) {
            assert_int_equal(reply.bth.dest_qp, bed_qpn(&bed->side[0], 1));
        }
    }
    bed_reload(side);
    side->rnic->roce.sinks[0].paused = &paused;
    run_deferred(side);
    while (raw_take(bed, &reply)) {
        assert_int_equal(reply.bth.dest_qp, bed_qpn(&bed->side[0], 1));
    }
    assert_int_equal(bed_state(side, 0), RNIC_QPS_RTS);
    paused = 0;
    rnic_port_ready(side->rnic, 0);
    run_deferred(side);
    while (raw_take(bed, &reply)) {
        sent[reply.bth.dest_qp != bed_qpn(&bed->side[0], 0)]++;
    }
    assert_int_equal(sent[0], 41);
    side->rnic->roce.sinks[0].paused = NULL;
}

/* QPs that were paused come after QPs that only wait for room. */
static void test_paused_queue_pairs_are_queued_after_waiting_ones(void **state)
{
    static const unsigned int order[] = {2, 3, 0, 1};
    struct bed *bed = *state;
    struct bed_side *side = &bed->side[1];
    uint8_t paused = BIT(3);
    struct raw_reply reply;
    unsigned int sent[4] = {0}, seen = 0;

    side->rnic->roce.sinks[0].paused = &paused;
    for (unsigned int n = 0; n < 4; n++) {
        uint32_t slot = bed_qpn(side, n) & 0x7ff;

        side->rnic->state.roce.qps[slot].path.priority = n < 2 ? 3 : 4;
        side->tx_room = n < 2 ? UINT32_MAX : 0;
        bed_send(side, n,
                 &(struct bed_wr){.opcode = RNIC_WR_WRITE, .len = 40 * MTU});
        run_deferred(side);
    }
    raw_expect_silence(bed);
    paused = 0;
    side->tx_room = UINT32_MAX;
    rnic_port_ready(side->rnic, 0);
    run_deferred(side);
    while (raw_take(bed, &reply)) {
        for (unsigned int n = 0; n < 4; n++) {
            if (reply.bth.dest_qp != bed_qpn(&bed->side[0], n)) {
                continue;
            }
            if (sent[n]++ == 0) {
                assert_int_equal(order[seen++], n);
            }
        }
    }
    for (unsigned int n = 0; n < 4; n++) {
        assert_int_equal(sent[n], 40);
    }
    side->rnic->roce.sinks[0].paused = NULL;
}

/* A queue pair that is destroyed while it waits leaves nothing behind. */
static void test_a_paused_queue_pair_may_be_destroyed(void **state)
{
    struct bed *bed = *state;
    struct bed_side *side = &bed->side[1];
    uint8_t paused = BIT(0);

    side->rnic->roce.sinks[0].paused = &paused;
    for (unsigned int n = 0; n < 3; n++) {
        bed_send(side, n, &(struct bed_wr){.opcode = RNIC_WR_WRITE, .len = 4});
    }
    run_deferred(side);
    raw_expect_silence(bed);
    assert_int_equal(
        bed_command(side, RNIC_CMD_QP_DESTROY, bed_qpn(side, 1), NULL, NULL),
        RNIC_CMD_OK);
    paused = 0;
    rnic_port_ready(side->rnic, 0);
    run_deferred(side);
    assert_int_equal(bed->side[0].in_tail - bed->side[0].in_head, 2);
    side->rnic->roce.sinks[0].paused = NULL;
}

TEST_FIXTURE(setup, teardown)
