/* SPDX-License-Identifier: BSD-2-Clause */
/* What a peer sends, and what it gets for it: RFC 5040 and RFC 5041. */
#include "iw_bed.h"

#include <stdarg.h>
#include <setjmp.h>
#include <string.h>
#include <cmocka.h>

#include "lib/bytes.h"
#include "tests/test_fixture.h"

static struct iw_bed *bed;
static struct iw_side *side;

static int setup(void **state)
{
    (void)state;
    bed = iw_new();
    side = &bed->side[0];
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    iw_free(bed);
    return 0;
}

TEST_FIXTURE(setup, teardown)

static const uint8_t text[] = "sixteen bytes...";
enum { TEXT_LEN = 16 };

static void give_send(uint32_t msn, const void *data, uint32_t len)
{
    struct ddp ddp = iw_send_ddp(msn, 0, true);

    iw_give_fpdu(bed, &ddp, data, len);
}

static void give_read(uint32_t msn, const struct rdmap_read *read)
{
    struct ddp ddp = iw_read_ddp(msn);
    uint8_t body[RDMAP_READ_LEN];

    rdmap_read_emit(read, body);
    iw_give_fpdu(bed, &ddp, body, sizeof(body));
}

/* ---- SEND. */

static void test_a_send_fills_the_next_buffer(void **state)
{
    struct iw_wc wc;

    (void)state;
    iw_raw(bed);
    iw_recv(side, 77, 0x100, 64);
    give_send(1, text, TEXT_LEN);
    assert_true(iw_poll(side, &wc));
    assert_int_equal(wc.wr_id, 77);
    assert_int_equal(wc.opcode, RDMA_WC_RECV);
    assert_int_equal(wc.status, VERBS_WC_SUCCESS);
    assert_int_equal(wc.len, TEXT_LEN);
    assert_false(wc.with_inv);
    assert_memory_equal(iw_data(side, 0x100), text, TEXT_LEN);
    iw_expect_event(side, RDMA_EVENT_QP_ESTABLISHED, 0);
    iw_expect_silence(bed);
}

static void test_a_send_of_segments_is_put_together(void **state)
{
    struct ddp first = iw_send_ddp(1, 0, false);
    struct ddp last = iw_send_ddp(1, 7, true);
    struct iw_wc wc;

    (void)state;
    iw_raw(bed);
    iw_recv(side, 1, 0, 64);
    iw_give_fpdu(bed, &first, text, 7);
    assert_false(iw_poll(side, &wc));
    iw_give_fpdu(bed, &last, text + 7, TEXT_LEN - 7);
    assert_true(iw_poll(side, &wc));
    assert_int_equal(wc.len, TEXT_LEN);
    assert_memory_equal(iw_data(side, 0), text, TEXT_LEN);
}

static void test_a_write_may_come_between_segments_of_a_send(void **state)
{
    struct ddp first = iw_send_ddp(1, 0, false);
    struct ddp last = iw_send_ddp(1, 8, true);
    struct ddp write = iw_write_ddp(IW_REMOTE_KEY, IW_DATA_ADDR + 0x1000);

    (void)state;
    iw_raw(bed);
    iw_recv(side, 1, 0, 64);
    iw_give_fpdu(bed, &first, text, 8);
    iw_give_fpdu(bed, &write, text, TEXT_LEN);
    iw_give_fpdu(bed, &last, text + 8, 8);
    iw_expect_wc(side, 1, VERBS_WC_SUCCESS);
    assert_memory_equal(iw_data(side, 0), text, TEXT_LEN);
    assert_memory_equal(iw_data(side, 0x1000), text, TEXT_LEN);
}

static void test_message_numbers_wrap(void **state)
{
    struct iw_wc wc;

    (void)state;
    iw_raw(bed);
    side->state->qps[IW_SLOT].rx.send_msn = 0xffffffff;
    iw_recv(side, 1, 0, 64);
    iw_recv(side, 2, 64, 64);
    give_send(0xffffffff, text, TEXT_LEN);
    give_send(0, text, TEXT_LEN);
    assert_true(iw_poll(side, &wc));
    assert_true(iw_poll(side, &wc));
    assert_int_equal(wc.wr_id, 2);
}

static void test_an_empty_send_takes_a_buffer(void **state)
{
    struct iw_wc wc;

    (void)state;
    iw_raw(bed);
    iw_recv(side, 5, 0, 64);
    give_send(1, NULL, 0);
    assert_true(iw_poll(side, &wc));
    assert_int_equal(wc.wr_id, 5);
    assert_int_equal(wc.len, 0);
}

static void test_an_rtr_send_is_for_nobody(void **state)
{
    struct iw_wc wc;

    (void)state;
    bed->has_send_rtr = true;
    iw_raw(bed);
    iw_recv(side, 5, 0, 64);
    give_send(1, NULL, 0);
    iw_expect_event(side, RDMA_EVENT_QP_ESTABLISHED, 0);
    assert_false(iw_poll(side, &wc));
    give_send(2, NULL, 0); /* only the first one */
    iw_expect_wc(side, 5, VERBS_WC_SUCCESS);
}

static void test_a_first_send_with_bytes_is_no_rtr(void **state)
{
    (void)state;
    bed->has_send_rtr = true;
    iw_raw(bed);
    iw_recv(side, 5, 0, 64);
    give_send(1, text, 1);
    iw_expect_wc(side, 5, VERBS_WC_SUCCESS);
}

/* ---- SEND with Invalidate. */

static void give_send_inv(uint32_t msn, uint32_t stag)
{
    struct ddp ddp = iw_send_ddp(msn, 0, true);

    ddp.opcode = RDMAP_SEND_INV;
    ddp.stag = stag;
    iw_give_fpdu(bed, &ddp, text, TEXT_LEN);
}

static void test_a_send_invalidates_a_key(void **state)
{
    struct iw_wc wc;

    (void)state;
    iw_raw(bed);
    iw_recv(side, 5, 0, 64);
    give_send_inv(1, IW_WRITE_KEY);
    assert_true(iw_poll(side, &wc));
    assert_true(wc.with_inv);
    assert_int_equal(wc.inv_key, IW_WRITE_KEY);
    assert_null(rdma_mr_find(side->objects, IW_WRITE_KEY));
    iw_expect_silence(bed);
}

static void test_a_key_that_was_invalidated_cannot_be_written(void **state)
{
    struct ddp write = iw_write_ddp(IW_WRITE_KEY, IW_DATA_ADDR);

    (void)state;
    iw_raw(bed);
    iw_recv(side, 5, 0, 64);
    give_send_inv(1, IW_WRITE_KEY);
    iw_give_fpdu(bed, &write, text, 1);
    iw_expect_terminate(bed, DDP_TAGGED_STAG, VERBS_WC_REMOTE_ACCESS);
}

static void test_a_key_cannot_be_invalidated_twice(void **state)
{
    (void)state;
    iw_raw(bed);
    iw_recv(side, 5, 0, 64);
    iw_recv(side, 6, 64, 64);
    give_send_inv(1, IW_WRITE_KEY);
    give_send_inv(2, IW_WRITE_KEY);
    iw_expect_terminate(bed, RDMAP_PROTECT_INVALIDATE, VERBS_WC_BAD_RESPONSE);
    iw_expect_wc(side, 5, VERBS_WC_SUCCESS);
    iw_expect_wc(side, 6, VERBS_WC_FLUSHED);
}

static void test_keys_of_others_cannot_be_invalidated(void **state)
{
    static const uint32_t keys[] = {IW_OTHER_PD_KEY, IW_LOCAL_KEY, 0x1234500};

    (void)state;
    for (unsigned int i = 0; i < ARRAY_LEN(keys); i++) {
        iw_raw(bed);
        iw_recv(side, 5, 0, 64);
        give_send_inv(1, keys[i]);
        iw_expect_terminate(bed, RDMAP_PROTECT_INVALIDATE,
                            VERBS_WC_BAD_RESPONSE);
        assert_non_null(rdma_mr_find(side->objects, IW_OTHER_PD_KEY));
        assert_non_null(rdma_mr_find(side->objects, IW_LOCAL_KEY));
        iw_free(bed);
        (void)setup(NULL);
    }
}

/* ---- WRITE. */

static void test_a_write_is_placed_without_a_completion(void **state)
{
    struct ddp write = iw_write_ddp(IW_WRITE_KEY, IW_DATA_ADDR + 3);
    struct iw_wc wc;

    (void)state;
    iw_raw(bed);
    iw_give_fpdu(bed, &write, text, TEXT_LEN);
    assert_memory_equal(iw_data(side, 3), text, TEXT_LEN);
    assert_false(iw_poll(side, &wc));
    iw_expect_event(side, RDMA_EVENT_QP_ESTABLISHED, 0);
    iw_expect_silence(bed);
}

static void test_an_empty_write_needs_no_key(void **state)
{
    struct ddp write = iw_write_ddp(1, 0);

    (void)state;
    iw_raw(bed);
    iw_give_fpdu(bed, &write, NULL, 0);
    iw_expect_event(side, RDMA_EVENT_QP_ESTABLISHED, 0);
    iw_expect_silence(bed);
}

/* ---- READ of the peer. */

static void test_a_read_is_answered(void **state)
{
    const struct rdmap_read read = {
        .sink_stag = 0xabcdef01,
        .source_stag = IW_READ_KEY,
        .sink_to = UINT64_C(0xffff888012345000),
        .source_to = IW_DATA_ADDR + 0x2000,
        .len_bytes = 4096,
    };
    uint32_t at = 0;
    struct iw_fpdu fpdu;

    (void)state;
    iw_raw(bed);
    iw_fill(side, 0x2000, 4096, 7);
    give_read(1, &read);
    while (at < 4096) {
        assert_true(iw_next(bed, &fpdu));
        assert_true(fpdu.ddp.is_tagged);
        assert_int_equal(fpdu.ddp.opcode, RDMAP_READ_RESPONSE);
        assert_int_equal(fpdu.ddp.stag, read.sink_stag);
        assert_int_equal(fpdu.ddp.to, read.sink_to + at);
        assert_memory_equal(fpdu.payload, iw_data(side, 0x2000 + at), fpdu.len);
        at += fpdu.len;
        assert_int_equal(fpdu.ddp.is_last, at == 4096);
    }
    iw_expect_silence(bed);
}

static void test_an_empty_read_is_answered(void **state)
{
    struct iw_fpdu fpdu;

    (void)state;
    iw_raw(bed);
    give_read(1, &(struct rdmap_read){.sink_stag = 9, .sink_to = 8});
    assert_true(iw_next(bed, &fpdu));
    assert_int_equal(fpdu.ddp.opcode, RDMAP_READ_RESPONSE);
    assert_int_equal(fpdu.len, 0);
    assert_true(fpdu.ddp.is_last);
    assert_int_equal(fpdu.ddp.stag, 9);
    assert_int_equal(fpdu.ddp.to, 8);
}

static void test_reads_up_to_the_limit_are_answered_in_order(void **state)
{
    struct iw_fpdu fpdu;

    (void)state;
    iw_raw(bed);
    bed->holds_acks = true;
    for (uint32_t i = 1; i <= 4; i++) {
        give_read(i, &(struct rdmap_read){.sink_stag = i,
                                          .source_stag = IW_READ_KEY,
                                          .source_to = IW_DATA_ADDR,
                                          .len_bytes = i});
    }
    for (uint32_t i = 1; i <= 4; i++) {
        assert_true(iw_next(bed, &fpdu));
        assert_int_equal(fpdu.ddp.stag, i);
        assert_int_equal(fpdu.len, i);
    }
    iw_expect_silence(bed);
}

static void test_a_read_beyond_the_limit_ends_the_connection(void **state)
{
    struct iw_fpdu fpdu;

    (void)state;
    iw_raw(bed);
    bed->holds_acks = true;
    for (uint32_t i = 1; i <= 5; i++) {
        give_read(i, &(struct rdmap_read){.sink_stag = i});
    }
    bed->holds_acks = false;
    iw_run(bed);
    for (uint32_t i = 1; i <= 4; i++) {
        assert_true(iw_next(bed, &fpdu));
    }
    iw_expect_terminate(bed, DDP_UNTAGGED_NO_BUFFER, VERBS_WC_BAD_RESPONSE);
}

static void test_acknowledged_reads_make_room(void **state)
{
    struct iw_fpdu fpdu;

    (void)state;
    iw_raw(bed);
    for (uint32_t i = 1; i <= 20; i++) {
        give_read(i, &(struct rdmap_read){.sink_stag = i});
        assert_true(iw_next(bed, &fpdu));
    }
    iw_expect_silence(bed);
}

/* ---- States. */

static void test_nothing_is_sent_in_rtr(void **state)
{
    struct iw_fpdu fpdu;

    (void)state;
    bed->is_raw = true;
    iw_create(side);
    assert_true(iw_modify(side, VERBS_QPS_RTR));
    give_read(1, &(struct rdmap_read){.sink_stag = 3});
    iw_expect_silence(bed);
    assert_true(iw_modify(side, VERBS_QPS_RTS));
    iw_run(bed);
    assert_true(iw_next(bed, &fpdu));
}

static void test_nothing_is_sent_before_the_peers_first_fpdu(void **state)
{
    const struct ddp rtr = iw_write_ddp(1, 0);
    struct iw_fpdu fpdu;

    (void)state;
    iw_raw(bed);
    iw_send(side, &(struct iw_wr){.opcode = VERBS_WR_SEND, .len = 8});
    iw_expect_silence(bed);
    iw_give_fpdu(bed, &rtr, NULL, 0);
    assert_true(iw_next(bed, &fpdu));
    assert_int_equal(fpdu.ddp.opcode, RDMAP_SEND);
}

static void test_an_error_in_rtr_resets_the_stream(void **state)
{
    struct ddp ddp = iw_write_ddp(0x999, 0);

    (void)state;
    bed->is_raw = true;
    iw_create(side);
    assert_true(iw_modify(side, VERBS_QPS_RTR));
    iw_give_fpdu(bed, &ddp, text, 1);
    assert_int_equal(side->announced, 0);
    assert_true(side->has_fin); /* nothing was sent: a FIN is enough */
    assert_false(side->is_attached);
    iw_expect_event(side, RDMA_EVENT_QP_FATAL, VERBS_WC_REMOTE_ACCESS);
}

static void test_rtr_needs_a_stream(void **state)
{
    (void)state;
    iw_create(side);
    side->refuses = true;
    assert_false(iw_modify(side, VERBS_QPS_RTR));
    assert_int_equal(iw_state(side), VERBS_QPS_INIT);
    side->refuses = false;
    assert_true(iw_modify(side, VERBS_QPS_RTR));
}

static void test_a_fin_between_messages_is_no_error(void **state)
{
    struct iw_event event;

    (void)state;
    iw_raw(bed);
    iw_recv(side, 1, 0, 64);
    give_send(1, text, TEXT_LEN);
    (void)iw_poll_event(side, &event);
    iwarp_finished(&side->iwarp, IW_SLOT, bed->now_ns);
    iw_run(bed);
    assert_false(iw_poll_event(side, &event));
    assert_int_equal(iw_state(side), VERBS_QPS_RTS);
    iwarp_engine_ops.qp_destroy(&side->iwarp, IW_SLOT);
    assert_true(side->has_fin && !side->has_rst && !side->is_attached);
}

static void test_a_fin_within_an_fpdu_is_an_error(void **state)
{
    uint8_t buf[256];
    const struct ddp ddp = iw_send_ddp(1, 0, true);
    uint32_t len = iw_fpdu(bed, &ddp, text, TEXT_LEN, buf);

    (void)state;
    iw_raw(bed);
    iw_recv(side, 1, 0, 64);
    iw_give(bed, buf, len - 1);
    iwarp_finished(&side->iwarp, IW_SLOT, bed->now_ns);
    iw_run(bed);
    iw_expect_event(side, RDMA_EVENT_QP_FATAL, VERBS_WC_BAD_RESPONSE);
    iw_expect_wc(side, 1, VERBS_WC_FLUSHED);
    assert_false(side->is_attached);
}

static void test_a_fin_within_a_message_is_an_error(void **state)
{
    struct ddp first = iw_send_ddp(1, 0, false);
    struct iw_event event;

    (void)state;
    iw_raw(bed);
    iw_recv(side, 1, 0, 64);
    iw_give_fpdu(bed, &first, text, 7);
    (void)iw_poll_event(side, &event);
    iwarp_finished(&side->iwarp, IW_SLOT, bed->now_ns);
    iw_run(bed);
    iw_expect_event(side, RDMA_EVENT_QP_FATAL, VERBS_WC_BAD_RESPONSE);
    iw_expect_wc(side, 1, VERBS_WC_FLUSHED);
}

static void test_a_lost_stream_flushes(void **state)
{
    struct iw_wc wc;

    (void)state;
    bed->no_mute = true;
    iw_raw(bed);
    bed->holds_acks = true;
    iw_recv(side, 1, 0, 64);
    iw_send(side, &(struct iw_wr){.opcode = VERBS_WR_SEND, .wr_id = 2});
    side->is_attached = false;
    iwarp_ended(&side->iwarp, IW_SLOT, RDMA_STREAM_TIMED_OUT, bed->now_ns);
    iw_expect_event(side, RDMA_EVENT_QP_FATAL, VERBS_WC_RETRY_EXCEEDED);
    iw_expect_wc(side, 2, VERBS_WC_FLUSHED);
    iw_expect_wc(side, 1, VERBS_WC_FLUSHED);
    assert_false(iw_poll(side, &wc));
    assert_int_equal(iw_counter(side, IWARP_STREAMS_LOST), 1);
    iw_run(bed);
    assert_int_equal(iw_stage(side), IWARP_NO_STREAM);
}

static void test_a_terminate_of_the_peer_ends_the_connection(void **state)
{
    /* As siw writes it, with layer and type in each other's place. */
    static const uint8_t body[] = {0x21, 0x03, 0x03, 0x00, 0x00, 0x40};
    struct ddp ddp = iw_send_ddp(1, 0, true);

    (void)state;
    ddp.opcode = RDMAP_TERMINATE;
    ddp.qn = DDP_QN_TERMINATE;
    bed->no_mute = true;
    iw_raw(bed);
    iw_recv(side, 1, 0, 64);
    iw_give_fpdu(bed, &ddp, body, sizeof(body));
    iw_expect_event(side, RDMA_EVENT_QP_FATAL, VERBS_WC_REMOTE_OPERATION);
    iw_expect_wc(side, 1, VERBS_WC_FLUSHED);
    assert_int_equal(iw_counter(side, IWARP_RX_TERMINATES), 1);
    assert_true(side->has_fin && !side->has_rst && !side->is_attached);
}

static void test_a_loaded_connection_has_ended(void **state)
{
    struct iw_event event;

    (void)state;
    iw_raw(bed);
    iw_recv(side, 1, 0, 64);
    side->is_attached = false;
    assert_true(iwarp_engine_ops.reload(&side->iwarp));
    assert_false(iw_poll_event(side, &event));
    iw_run(bed);
    iw_expect_event(side, RDMA_EVENT_QP_FATAL, VERBS_WC_RETRY_EXCEEDED);
    iw_expect_wc(side, 1, VERBS_WC_FLUSHED);
    assert_int_equal(iw_state(side), VERBS_QPS_ERROR);
}

/* A buffer that a SEND has begun to fill is flushed in the loaded machine. */
static void test_a_loaded_send_is_flushed(void **state)
{
    struct ddp first = iw_send_ddp(1, 0, false);
    struct iw_event event;

    (void)state;
    iw_raw(bed);
    iw_recv(side, 4, 0, 64);
    iw_recv(side, 5, 64, 64);
    iw_give_fpdu(bed, &first, text, 7);
    (void)iw_poll_event(side, &event);
    side->is_attached = false;
    assert_true(iwarp_engine_ops.reload(&side->iwarp));
    iw_run(bed);
    iw_expect_event(side, RDMA_EVENT_QP_FATAL, VERBS_WC_RETRY_EXCEEDED);
    iw_expect_wc(side, 4, VERBS_WC_FLUSHED);
    iw_expect_wc(side, 5, VERBS_WC_FLUSHED);
}

static void test_impossible_states_are_not_loaded(void **state)
{
    const uint8_t two = 2;

    (void)state;
    iw_raw(bed);
    side->state->qps[9].stage = IWARP_STAGES;
    assert_false(iwarp_engine_ops.reload(&side->iwarp));
    side->state->qps[9].stage = IWARP_NO_STREAM;
    memcpy(&side->state->qps[9].rx.in_send, &two, 1);
    assert_false(iwarp_engine_ops.reload(&side->iwarp));
    side->state->qps[9].rx.in_send = false;
    assert_true(iwarp_engine_ops.reload(&side->iwarp));
}

static void test_a_reset_resets_the_stream(void **state)
{
    (void)state;
    iw_raw(bed);
    iwarp_engine_ops.reset(&side->iwarp);
    assert_true(side->has_rst && !side->is_attached);
}
