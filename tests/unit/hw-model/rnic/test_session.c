/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two RNICs connected to each other: requests posted on one side have their
 * effect on the other.
 */
#include <stdarg.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "tests/test_fixture.h"
#include "bed.h"

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

static void expect_completion(struct bed_side *side, uint64_t wr_id,
                              uint8_t opcode, uint8_t status)
{
    struct bed_wc wc;

    assert_true(bed_poll(side, &wc));
    assert_int_equal(wc.wr_id, wr_id);
    assert_int_equal(wc.opcode, opcode);
    assert_int_equal(wc.status, status);
}

static void expect_nothing(struct bed_side *side)
{
    struct bed_wc wc;

    assert_false(bed_poll(side, &wc));
}

static void test_send_arrives_in_the_posted_buffer(void **state)
{
    struct bed *bed = *state;
    struct bed_side *a = &bed->side[0], *b = &bed->side[1];
    struct bed_wc wc;

    bed_connect(bed, 0, &(struct bed_path){0});
    bed_fill(a, 0, 1000, 1);
    bed_recv(b, 0, 77, 0, 4096);
    bed_send(a, 0,
             &(struct bed_wr){.opcode = RNIC_WR_SEND,
                              .flags = RNIC_WR_SIGNALED,
                              .wr_id = 5,
                              .len = 1000});
    bed_settle(bed);
    expect_completion(a, 5, RNIC_WR_SEND, RNIC_WC_SUCCESS);
    assert_true(bed_poll(b, &wc));
    assert_int_equal(wc.wr_id, 77);
    assert_int_equal(wc.len, 1000);
    assert_int_equal(wc.opcode, RNIC_WR_RECV);
    assert_int_equal(wc.qpn, bed_qpn(b, 0));
    assert_true(bed_same(bed, 0, 0, 1000));
    expect_nothing(a);
    expect_nothing(b);
}

static void test_write_and_read_move_a_megabyte(void **state)
{
    struct bed *bed = *state;
    struct bed_side *a = &bed->side[0], *b = &bed->side[1];
    const uint32_t len = 1000003;

    bed_connect(bed, 0, &(struct bed_path){.mtu = 3});
    bed_fill(a, 0, len, 2);
    bed_fill(b, 1 << 20, len, 3);
    bed_post(a, 0,
             &(struct bed_wr){
                 .opcode = RNIC_WR_WRITE, .wr_id = 1, .len = len, .sges = 3});
    bed_send(a, 0,
             &(struct bed_wr){.opcode = RNIC_WR_READ,
                              .flags = RNIC_WR_SIGNALED,
                              .wr_id = 2,
                              .offset = 1 << 20,
                              .remote = 1 << 20,
                              .len = len,
                              .sges = 4});
    bed_settle(bed);
    expect_completion(a, 2, RNIC_WR_READ, RNIC_WC_SUCCESS);
    assert_true(bed_same(bed, 0, 0, len));
    assert_true(bed_same(bed, 1 << 20, 1 << 20, len));
    assert_int_equal(bed_counter(a, RNIC_COUNT_RETRANSMITTED), 0);
    expect_nothing(b);
}

static void test_rnr_waits_for_a_buffer(void **state)
{
    struct bed *bed = *state;
    struct bed_side *a = &bed->side[0], *b = &bed->side[1];

    bed_connect(bed, 0, &(struct bed_path){0});
    bed_send(a, 0,
             &(struct bed_wr){.opcode = RNIC_WR_SEND,
                              .flags = RNIC_WR_SIGNALED,
                              .wr_id = 1,
                              .len = 64});
    bed_run(bed);
    expect_nothing(a);
    assert_int_equal(bed_counter(b, RNIC_COUNT_TX_RNR), 1);
    assert_int_equal(bed_counter(a, RNIC_COUNT_RX_RNR), 1);
    bed_recv(b, 0, 9, 0, 64);
    bed_run(bed);
    expect_nothing(a);
    bed_settle(bed);
    expect_completion(b, 9, RNIC_WR_RECV, RNIC_WC_SUCCESS);
    expect_completion(a, 1, RNIC_WR_SEND, RNIC_WC_SUCCESS);
}

static void test_send_with_invalidate_invalidates_the_region(void **state)
{
    struct bed *bed = *state;
    struct bed_side *a = &bed->side[0], *b = &bed->side[1];
    struct bed_wc wc;

    bed_connect(bed, 0, &(struct bed_path){0});
    bed_recv(b, 0, 9, 0, 64);
    bed_send(a, 0,
             &(struct bed_wr){.opcode = RNIC_WR_SEND_INV,
                              .flags = RNIC_WR_INLINE,
                              .inline_data = (const uint8_t *)"hello",
                              .inv_key = BED_REMOTE_KEY,
                              .len = 5});
    bed_settle(bed);
    assert_true(bed_poll(b, &wc));
    assert_true(wc.flags & RNIC_CQE_WITH_INV);
    assert_int_equal(wc.inv_key, BED_REMOTE_KEY);
    assert_memory_equal(bed_data(b, 0), "hello", 5);
    expect_nothing(a);
    bed_send(a, 0, &(struct bed_wr){.opcode = RNIC_WR_WRITE, .len = 4});
    bed_settle(bed);
    expect_completion(a, 0, RNIC_WR_WRITE, RNIC_WC_REMOTE_ACCESS);
}

static void test_retries_end_and_flush_in_order(void **state)
{
    struct bed *bed = *state;
    struct bed_side *a = &bed->side[0];
    struct bed_event event;

    bed_connect(bed, 0, &(struct bed_path){.retries = 3});
    bed->loss_per_1000 = 1000;
    for (uint64_t i = 0; i < 4; i++) {
        bed_post(
            a, 0,
            &(struct bed_wr){.opcode = RNIC_WR_WRITE, .wr_id = i, .len = 100});
    }
    bed_ring(a, 0);
    bed_recv(a, 0, 50, 0, 64);
    bed_settle(bed);
    expect_completion(a, 0, RNIC_WR_WRITE, RNIC_WC_RETRY_EXCEEDED);
    expect_completion(a, 1, RNIC_WR_WRITE, RNIC_WC_FLUSHED);
    expect_completion(a, 2, RNIC_WR_WRITE, RNIC_WC_FLUSHED);
    expect_completion(a, 3, RNIC_WR_WRITE, RNIC_WC_FLUSHED);
    expect_completion(a, 50, RNIC_WR_RECV, RNIC_WC_FLUSHED);
    expect_nothing(a);
    assert_true(bed_poll_event(a, &event));
    assert_int_equal(event.type, RNIC_EVENT_QP_FATAL);
    assert_int_equal(event.index, bed_qpn(a, 0));
    assert_int_equal(event.info, RNIC_WC_RETRY_EXCEEDED);
    assert_int_equal(bed_counter(a, RNIC_COUNT_TIMEOUTS), 4);
    assert_int_equal(bed_counter(a, RNIC_COUNT_RETRANSMITTED), 12);
    assert_int_equal(bed_state(a, 0), RNIC_QPS_ERROR);
}

TEST_FIXTURE(setup, teardown)
