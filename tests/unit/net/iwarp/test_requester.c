/* SPDX-License-Identifier: BSD-2-Clause */
/* Work requests: what they become, and when they complete. */
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
    bed->no_mute = true;
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

static const uint8_t zeros[4096];

static void expect_fpdu(struct iw_fpdu *fpdu, enum rdmap_opcode opcode,
                        uint32_t len)
{
    assert_true(iw_next(bed, fpdu));
    assert_int_equal(fpdu->ddp.opcode, opcode);
    assert_int_equal(fpdu->len, len);
}

/* ---- Between two engines. */

static void test_a_send_arrives(void **state)
{
    struct iw_side *peer = &bed->side[1];
    struct iw_wc wc;

    (void)state;
    iw_connect(bed);
    iw_recv(peer, 8, 0x4000, 9000);
    iw_fill(side, 0, 9000, 3);
    iw_send(side,
            &(struct iw_wr){.opcode = VERBS_WR_SEND, .wr_id = 1, .len = 9000});
    iw_expect_wc(side, 1, VERBS_WC_SUCCESS);
    assert_true(iw_poll(peer, &wc));
    assert_int_equal(wc.len, 9000);
    assert_memory_equal(iw_data(peer, 0x4000), iw_data(side, 0), 9000);
}

static void test_a_write_arrives(void **state)
{
    struct iw_side *peer = &bed->side[1];

    (void)state;
    iw_connect(bed);
    iw_fill(side, 0, 100001, 3);
    iw_send(side, &(struct iw_wr){.opcode = VERBS_WR_WRITE,
                                  .wr_id = 1,
                                  .len = 100001,
                                  .remote = 0x100003,
                                  .sges = 3});
    iw_expect_wc(side, 1, VERBS_WC_SUCCESS);
    assert_memory_equal(iw_data(peer, 0x100003), iw_data(side, 0), 100001);
}

static void test_a_read_is_scattered(void **state)
{
    struct iw_side *peer = &bed->side[1];

    (void)state;
    iw_connect(bed);
    iw_fill(peer, 0x1003, 70001, 5);
    for (uint8_t sges = 1; sges <= 4; sges++) {
        memset(iw_data(side, 0), 0, 70001);
        iw_send(side, &(struct iw_wr){.opcode = VERBS_WR_READ,
                                      .wr_id = sges,
                                      .len = 70001,
                                      .remote = 0x1003,
                                      .sges = sges});
        iw_expect_wc(side, sges, VERBS_WC_SUCCESS);
        assert_memory_equal(iw_data(side, 0), iw_data(peer, 0x1003), 70001);
    }
}

static void test_both_sides_send_at_once(void **state)
{
    struct iw_side *peer = &bed->side[1];

    (void)state;
    iw_connect(bed);
    iw_fill(side, 0, 65536, 3);
    iw_fill(peer, 0, 65536, 4);
    for (unsigned int i = 0; i < 8; i++) {
        iw_post(side, &(struct iw_wr){.opcode = i & 1 ? VERBS_WR_READ
                                                      : VERBS_WR_WRITE,
                                      .wr_id = i,
                                      .offset = i & 1 ? 0x100000 : 0,
                                      .len = 65536,
                                      .remote = i & 1 ? 0 : 0x140000});
        iw_post(peer, &(struct iw_wr){.opcode = i & 1 ? VERBS_WR_READ
                                                      : VERBS_WR_WRITE,
                                      .wr_id = i,
                                      .offset = i & 1 ? 0x100000 : 0,
                                      .len = 65536,
                                      .remote = i & 1 ? 0 : 0x140000});
    }
    iw_ring(side);
    iw_ring(peer);
    iw_run(bed);
    for (unsigned int i = 0; i < 8; i++) {
        iw_expect_wc(side, i, VERBS_WC_SUCCESS);
        iw_expect_wc(peer, i, VERBS_WC_SUCCESS);
    }
    assert_memory_equal(iw_data(side, 0x100000), iw_data(peer, 0), 65536);
    assert_memory_equal(iw_data(peer, 0x100000), iw_data(side, 0), 65536);
    assert_memory_equal(iw_data(side, 0x140000), iw_data(peer, 0), 65536);
}

static void test_a_send_with_invalidate_arrives(void **state)
{
    struct iw_side *peer = &bed->side[1];
    struct iw_wc wc;

    (void)state;
    iw_connect(bed);
    iw_recv(peer, 8, 0, 64);
    iw_send(side, &(struct iw_wr){.opcode = VERBS_WR_SEND_INV,
                                  .len = 16,
                                  .inv_key = IW_WRITE_KEY});
    assert_true(iw_poll(peer, &wc));
    assert_true(wc.with_inv);
    assert_int_equal(wc.inv_key, IW_WRITE_KEY);
    assert_null(rdma_mr_find(peer->objects, IW_WRITE_KEY));
    assert_non_null(rdma_mr_find(side->objects, IW_WRITE_KEY));
}

/* A Terminate tells the requester; RFC 5040 section 6.2. */
static void test_a_refused_write_fails_both_sides(void **state)
{
    struct iw_side *peer = &bed->side[1];

    (void)state;
    iw_connect(bed);
    iw_recv(peer, 8, 0, 64);
    iw_recv(side, 9, 0, 64);
    iw_send(side,
            &(struct iw_wr){.opcode = VERBS_WR_WRITE, .len = 1, .rkey = 0x777});
    iw_expect_event(peer, RDMA_EVENT_QP_FATAL, VERBS_WC_REMOTE_ACCESS);
    iw_expect_event(side, RDMA_EVENT_QP_FATAL, VERBS_WC_REMOTE_OPERATION);
    iw_expect_wc(peer, 8, VERBS_WC_FLUSHED);
    assert_int_equal(iw_counter(peer, IWARP_TX_TERMINATES), 1);
    assert_int_equal(iw_counter(side, IWARP_RX_TERMINATES), 1);
    assert_int_equal(iw_counter(side, IWARP_TX_TERMINATES), 0);
}

/* ---- What is on the wire. */

static void test_messages_are_cut_into_equal_fpdus(void **state)
{
    struct iw_fpdu fpdu;

    (void)state;
    iw_raw(bed);
    iw_fill(side, 0, 4096, 3);
    iw_send(side, &(struct iw_wr){.opcode = VERBS_WR_WRITE,
                                  .len = 4096,
                                  .remote_addr = UINT64_C(0xffff888005fd1000),
                                  .rkey = 0xcbaeeb02});
    expect_fpdu(&fpdu, RDMAP_WRITE, 1428); /* as siw does with this MSS */
    assert_int_equal(fpdu.ddp.to, UINT64_C(0xffff888005fd1000));
    assert_int_equal(fpdu.ddp.stag, 0xcbaeeb02);
    assert_false(fpdu.ddp.is_last);
    expect_fpdu(&fpdu, RDMAP_WRITE, 1428);
    assert_int_equal(fpdu.ddp.to, UINT64_C(0xffff888005fd1594));
    expect_fpdu(&fpdu, RDMAP_WRITE, 1240);
    assert_true(fpdu.ddp.is_last);
    assert_memory_equal(fpdu.payload, iw_data(side, 2856), 1240);
}

static void test_sends_are_numbered(void **state)
{
    struct iw_fpdu fpdu;

    (void)state;
    iw_raw(bed);
    for (uint32_t msn = 1; msn <= 3; msn++) {
        iw_send(side, &(struct iw_wr){.opcode = VERBS_WR_SEND, .len = 2000});
        expect_fpdu(&fpdu, RDMAP_SEND, 1424);
        assert_int_equal(fpdu.ddp.msn, msn);
        assert_int_equal(fpdu.ddp.mo, 0);
        assert_int_equal(fpdu.ddp.qn, 0);
        assert_int_equal(fpdu.ddp.stag, 0);
        expect_fpdu(&fpdu, RDMAP_SEND, 576);
        assert_int_equal(fpdu.ddp.msn, msn);
        assert_int_equal(fpdu.ddp.mo, 1424);
        assert_true(fpdu.ddp.is_last);
    }
}

static void test_solicited_sends_have_opcodes_of_their_own(void **state)
{
    struct iw_fpdu fpdu;

    (void)state;
    iw_raw(bed);
    iw_send(side, &(struct iw_wr){.opcode = VERBS_WR_SEND,
                                  .flags = RNIC_WR_SOLICITED});
    expect_fpdu(&fpdu, RDMAP_SEND_SE, 0);
    iw_send(side, &(struct iw_wr){.opcode = VERBS_WR_SEND_INV,
                                  .flags = RNIC_WR_SOLICITED,
                                  .inv_key = 0x99});
    expect_fpdu(&fpdu, RDMAP_SEND_SE_INV, 0);
    assert_int_equal(fpdu.ddp.stag, 0x99);
}

static void test_inline_data_is_sent(void **state)
{
    struct iw_fpdu fpdu;

    (void)state;
    iw_raw(bed);
    iw_send(side,
            &(struct iw_wr){.opcode = VERBS_WR_SEND_INV,
                            .inv_key = 0xcbaeeb01,
                            .inline_data = (const uint8_t *)"sixteen bytes..",
                            .len = 16});
    expect_fpdu(&fpdu, RDMAP_SEND_INV, 16);
    assert_memory_equal(fpdu.payload, "sixteen bytes..", 16);
}

static void test_segments_hold_whole_fpdus(void **state)
{
    struct rdma_stream_piece pieces[RDMA_STREAM_PIECES];
    uint32_t small = mpa_fpdu_bytes(DDP_UNTAGGED_LEN + 16);
    uint32_t len = 0;
    unsigned int n;

    (void)state;
    iw_raw(bed);
    side->is_attached = false; /* nothing is fetched by the bed */
    for (unsigned int i = 0; i < 2; i++) {
        iw_post(side, &(struct iw_wr){.opcode = VERBS_WR_SEND, .len = 16});
    }
    iw_post(side, &(struct iw_wr){.opcode = VERBS_WR_WRITE, .len = 4096});
    side->is_attached = true;
    iw_ring(side);
    (void)iwarp_engine_ops.transmit(&side->iwarp, 9, bed->now_ns);
    /* Two SENDs; the first FPDU of the WRITE would not fit. */
    n = iwarp_fetch(&side->iwarp, IW_SLOT, 0, 1448, pieces);
    for (unsigned int i = 0; i < n; i++) {
        len += pieces[i].len_bytes;
    }
    assert_int_equal(len, 2 * small);
    n = iwarp_fetch(&side->iwarp, IW_SLOT, 2 * small, 1448, pieces);
    len = 0;
    for (unsigned int i = 0; i < n; i++) {
        len += pieces[i].len_bytes;
    }
    assert_int_equal(len, 1448);
}

static void test_a_part_of_an_fpdu_waits_for_its_own_segment(void **state)
{
    struct rdma_stream_piece pieces[RDMA_STREAM_PIECES];
    uint32_t len = 0;
    unsigned int n;

    (void)state;
    iw_raw(bed);
    bed->holds_acks = true;
    iw_post(side, &(struct iw_wr){.opcode = VERBS_WR_SEND, .len = 16});
    iw_post(side, &(struct iw_wr){.opcode = VERBS_WR_WRITE, .len = 4096});
    iw_ring(side);
    iw_run(bed);
    n = iwarp_fetch(&side->iwarp, IW_SLOT, 0, 1448, pieces);
    for (unsigned int i = 0; i < n; i++) {
        len += pieces[i].len_bytes;
    }
    assert_int_equal(len, mpa_fpdu_bytes(DDP_UNTAGGED_LEN + 16));
}

/* Whatever pieces TCP asks for, and however often, it gets the same bytes. */
static void test_bytes_can_be_fetched_again_in_any_pieces(void **state)
{
    struct rdma_stream_piece pieces[RDMA_STREAM_PIECES];
    uint32_t total;

    (void)state;
    iw_raw(bed);
    bed->holds_acks = true;
    iw_fill(side, 0, 8192, 3);
    iw_post(side, &(struct iw_wr){.opcode = VERBS_WR_SEND, .len = 17});
    iw_post(side,
            &(struct iw_wr){.opcode = VERBS_WR_WRITE, .len = 4001, .sges = 4});
    iw_post(side, &(struct iw_wr){.opcode = VERBS_WR_READ, .len = 64});
    iw_post(side,
            &(struct iw_wr){.opcode = VERBS_WR_SEND, .len = 1500, .sges = 2});
    iw_ring(side);
    iw_run(bed);
    total = (uint32_t)side->fetched;
    for (uint32_t len = 1; len < 1500; len += len < 64 ? 1 : 97) {
        for (uint32_t at = 0; at < total;) {
            uint32_t want = MIN(len, total - at);
            unsigned int n =
                iwarp_fetch(&side->iwarp, IW_SLOT, at, want, pieces);
            uint32_t got = 0;

            assert_true(n != 0 && n <= RDMA_STREAM_PIECES);
            for (unsigned int i = 0; i < n; i++) {
                assert_memory_equal(pieces[i].data, side->out + at,
                                    pieces[i].len_bytes);
                at += pieces[i].len_bytes;
                got += pieces[i].len_bytes;
            }
            assert_true(got <= want);
        }
    }
}

static void test_a_small_mss_works(void **state)
{
    struct iw_side *peer = &bed->side[1];

    (void)state;
    bed->mss = 40;
    iw_connect(bed);
    iw_fill(side, 0, 3000, 3);
    iw_send(side, &(struct iw_wr){.opcode = VERBS_WR_WRITE,
                                  .wr_id = 1,
                                  .len = 3000,
                                  .remote = 0x10000});
    iw_expect_wc(side, 1, VERBS_WC_SUCCESS);
    assert_memory_equal(iw_data(peer, 0x10000), iw_data(side, 0), 3000);
}

static void test_jumbo_segments_work(void **state)
{
    struct iw_side *peer = &bed->side[1];

    (void)state;
    bed->mss = 8948;
    iw_connect(bed);
    iw_fill(side, 0, 30000, 3);
    iw_send(side, &(struct iw_wr){.opcode = VERBS_WR_WRITE,
                                  .wr_id = 1,
                                  .len = 30000,
                                  .remote = 0x10000,
                                  .sges = 4});
    iw_expect_wc(side, 1, VERBS_WC_SUCCESS);
    assert_memory_equal(iw_data(peer, 0x10000), iw_data(side, 0), 30000);
}

/* The longest FPDU, in more pieces than an answer has. */
static void test_the_longest_fpdu_is_copied(void **state)
{
    struct iw_side *peer = &bed->side[1];

    (void)state;
    bed->mss = 65535;
    bed->segment = 8192;
    iw_connect(bed);
    iw_fill(side, 0, 16364, 3);
    iw_send(side, &(struct iw_wr){.opcode = VERBS_WR_WRITE,
                                  .wr_id = 1,
                                  .len = 16364,
                                  .remote = 0x10000,
                                  .sges = 4});
    iw_expect_wc(side, 1, VERBS_WC_SUCCESS);
    assert_memory_equal(iw_data(peer, 0x10000), iw_data(side, 0), 16364);
}

/* ---- Completion. */

static void test_a_send_completes_when_it_is_acknowledged(void **state)
{
    struct iw_wc wc;

    (void)state;
    iw_raw(bed);
    bed->holds_acks = true;
    iw_send(side,
            &(struct iw_wr){.opcode = VERBS_WR_SEND, .wr_id = 4, .len = 100});
    assert_false(iw_poll(side, &wc));
    iwarp_acked(&side->iwarp, IW_SLOT, (uint32_t)side->announced - 1,
                bed->now_ns);
    assert_false(iw_poll(side, &wc));
    iwarp_acked(&side->iwarp, IW_SLOT, 1, bed->now_ns);
    iw_expect_wc(side, 4, VERBS_WC_SUCCESS);
}

static void test_the_window_bounds_what_is_announced(void **state)
{
    (void)state;
    iw_raw(bed);
    bed->holds_acks = true;
    iw_fill(side, 0, 1000000, 9);
    iw_send(side, &(struct iw_wr){
                      .opcode = VERBS_WR_WRITE, .wr_id = 4, .len = 1000000});
    assert_true(side->announced <= IWARP_WINDOW);
    assert_true(side->announced > IWARP_WINDOW - 1448);
    assert_int_equal(side->announced % 1448, 0);
    bed->holds_acks = false;
    iw_run(bed);
    iw_expect_wc(side, 4, VERBS_WC_SUCCESS);
}

static void test_more_requests_than_records_are_sent(void **state)
{
    struct iw_side *peer = &bed->side[1];
    unsigned int i;

    (void)state;
    iw_connect(bed);
    for (i = 0; i < 200; i++) {
        iw_post(side, &(struct iw_wr){.opcode = VERBS_WR_WRITE,
                                      .wr_id = i,
                                      .offset = i,
                                      .len = 1,
                                      .remote = 0x10000 + i});
    }
    iw_fill(side, 0, 200, 3);
    iw_ring(side);
    iw_run(bed);
    for (i = 0; i < 200; i++) {
        iw_expect_wc(side, i, VERBS_WC_SUCCESS);
    }
    assert_memory_equal(iw_data(peer, 0x10000), iw_data(side, 0), 200);
}

/* ---- READ. */

static void post_read(uint64_t wr_id, uint32_t offset, uint32_t len,
                      uint8_t flags)
{
    iw_send(side, &(struct iw_wr){.opcode = VERBS_WR_READ,
                                  .flags = flags,
                                  .wr_id = wr_id,
                                  .offset = offset,
                                  .len = len,
                                  .remote_addr = 0x1234,
                                  .rkey = 0x5678});
}

static uint32_t expect_read(uint32_t msn, uint32_t len)
{
    struct rdmap_read read;
    struct iw_fpdu fpdu;

    expect_fpdu(&fpdu, RDMAP_READ_REQUEST, RDMAP_READ_LEN);
    assert_int_equal(fpdu.ddp.qn, DDP_QN_READ);
    assert_int_equal(fpdu.ddp.msn, msn);
    assert_int_equal(fpdu.ddp.mo, 0);
    assert_true(fpdu.ddp.is_last);
    assert_true(rdmap_read_parse(&read, fpdu.payload, fpdu.len));
    assert_int_equal(read.len_bytes, len);
    assert_int_equal(read.source_stag, 0x5678);
    assert_int_equal(read.source_to, 0x1234);
    assert_int_equal(read.sink_to, 0);
    return read.sink_stag;
}

static void give_response(uint32_t stag, uint64_t to, uint32_t len,
                          bool is_last)
{
    struct ddp ddp = iw_write_ddp(stag, to);

    ddp.opcode = RDMAP_READ_RESPONSE;
    ddp.is_last = is_last;
    iw_give_fpdu(bed, &ddp, zeros, len);
}

static void test_a_read_completes_with_its_last_response(void **state)
{
    struct iw_wc wc;
    uint32_t key;

    (void)state;
    iw_raw(bed);
    memset(iw_data(side, 0), 0x5a, 102);
    post_read(7, 1, 100, 0);
    key = expect_read(1, 100);
    give_response(key, 0, 60, false);
    assert_false(iw_poll(side, &wc));
    give_response(key, 60, 40, true);
    iw_expect_wc(side, 7, VERBS_WC_SUCCESS);
    assert_int_equal(*iw_data(side, 0), 0x5a);
    assert_int_equal(*iw_data(side, 1), 0);
    assert_int_equal(*iw_data(side, 100), 0);
    assert_int_equal(*iw_data(side, 101), 0x5a);
    iw_expect_silence(bed);
}

static void test_requests_complete_in_their_order(void **state)
{
    struct iw_wc wc;
    uint32_t key;

    (void)state;
    iw_raw(bed);
    post_read(1, 0, 8, 0);
    iw_send(side, &(struct iw_wr){.opcode = VERBS_WR_SEND, .wr_id = 2});
    key = expect_read(1, 8);
    assert_false(iw_poll(side, &wc)); /* the SEND is acknowledged already */
    give_response(key, 0, 8, true);
    iw_expect_wc(side, 1, VERBS_WC_SUCCESS);
    iw_expect_wc(side, 2, VERBS_WC_SUCCESS);
}

static void test_a_fence_waits_for_reads(void **state)
{
    struct iw_fpdu fpdu;
    uint32_t key;

    (void)state;
    iw_raw(bed);
    post_read(1, 0, 8, 0);
    iw_send(side, &(struct iw_wr){.opcode = VERBS_WR_SEND,
                                  .flags = RNIC_WR_FENCE,
                                  .wr_id = 2});
    key = expect_read(1, 8);
    iw_expect_silence(bed);
    give_response(key, 0, 8, true);
    expect_fpdu(&fpdu, RDMAP_SEND, 0);
}

static void test_no_more_reads_than_the_peer_serves(void **state)
{
    uint32_t keys[4];

    (void)state;
    iw_raw(bed);
    for (uint32_t i = 0; i < 6; i++) {
        post_read(i, 8 * i, 8, 0);
    }
    for (uint32_t i = 0; i < 4; i++) {
        keys[i] = expect_read(i + 1, 8);
    }
    iw_expect_silence(bed);
    give_response(keys[0], 0, 8, true);
    (void)expect_read(5, 8);
    iw_expect_silence(bed);
}

static void test_a_read_fails_if_the_peer_serves_none(void **state)
{
    (void)state;
    iw_raw(bed);
    side->state->qps[IW_SLOT].attr.max_rd_atomic = 0;
    post_read(3, 0, 8, 0);
    iw_expect_terminate(bed, RDMAP_LOCAL_CATASTROPHIC,
                        VERBS_WC_LOCAL_OPERATION);
    iw_expect_wc(side, 3, VERBS_WC_LOCAL_OPERATION);
}

static void test_keys_of_reads_differ(void **state)
{
    uint32_t keys[3];

    (void)state;
    iw_raw(bed);
    for (uint32_t i = 0; i < 3; i++) {
        post_read(i, 0, 8, 0);
        keys[i] = expect_read(i + 1, 8);
        assert_true(keys[i] & 0x80000000);
        give_response(keys[i], 0, 8, true);
    }
    assert_true((keys[0] & 0xffffff) != (keys[1] & 0xffffff));
    assert_true((keys[1] & 0xffffff) != (keys[2] & 0xffffff));
}

static void test_a_key_is_dead_after_the_response(void **state)
{
    uint32_t key;

    (void)state;
    iw_raw(bed);
    post_read(1, 0, 8, 0);
    key = expect_read(1, 8);
    give_response(key, 0, 8, true);
    post_read(2, 8, 8, 0);
    assert_int_not_equal(expect_read(2, 8), key);
    give_response(key, 0, 8, true);
    iw_expect_terminate(bed, DDP_TAGGED_STAG, VERBS_WC_BAD_RESPONSE);
    iw_expect_wc(side, 1, VERBS_WC_SUCCESS);
    iw_expect_wc(side, 2, VERBS_WC_FLUSHED);
}

static void test_a_key_of_a_read_is_not_for_a_write(void **state)
{
    struct ddp write;

    (void)state;
    iw_raw(bed);
    post_read(1, 0, 8, 0);
    write = iw_write_ddp(expect_read(1, 8), 0);
    iw_give_fpdu(bed, &write, zeros, 8);
    iw_expect_terminate(bed, DDP_TAGGED_STAG, VERBS_WC_REMOTE_ACCESS);
}

static void test_a_key_of_a_read_cannot_be_invalidated(void **state)
{
    struct ddp send = iw_send_ddp(1, 0, true);

    (void)state;
    iw_raw(bed);
    iw_recv(side, 9, 0, 64);
    post_read(1, 0, 8, 0);
    send.opcode = RDMAP_SEND_INV;
    send.stag = expect_read(1, 8);
    iw_give_fpdu(bed, &send, zeros, 8);
    iw_expect_terminate(bed, RDMAP_PROTECT_INVALIDATE, VERBS_WC_BAD_RESPONSE);
}

/* Responses come in the order of the requests, without gaps, and whole. */
static void test_wrong_responses_are_refused(void **state)
{
    static const struct {
        uint32_t key_change;
        uint64_t to;
        uint32_t len;
        bool is_last;
        enum rdmap_error error;
    } rows[] = {
        {1, 0, 8, true, DDP_TAGGED_STAG},
        {0, 1, 8, true, DDP_TAGGED_BOUNDS},
        {0, UINT64_MAX, 8, true, DDP_TAGGED_BOUNDS},
        {0, 0, 9, true, DDP_TAGGED_BOUNDS},
        {0, 0, 7, true, DDP_TAGGED_BOUNDS},
        {0, 0, 8, false, DDP_TAGGED_BOUNDS},
        {0, 0, 0, true, DDP_TAGGED_BOUNDS},
    };

    for (unsigned int i = 0; i < ARRAY_LEN(rows); i++) {
        uint32_t key;

        iw_raw(bed);
        memset(iw_data(side, 0), 0x5a, 16);
        post_read(1, 4, 8, 0);
        key = expect_read(1, 8);
        give_response(key ^ rows[i].key_change, rows[i].to, rows[i].len,
                      rows[i].is_last);
        iw_expect_terminate(bed, rows[i].error, VERBS_WC_BAD_RESPONSE);
        iw_expect_wc(side, 1, VERBS_WC_FLUSHED);
        for (uint32_t at = 0; at < 16; at++) {
            assert_int_equal(*iw_data(side, at), 0x5a);
        }
        (void)teardown(state);
        (void)setup(state);
    }
}

static void test_the_second_read_is_not_answered_before_the_first(void **state)
{
    uint32_t second;

    (void)state;
    iw_raw(bed);
    post_read(1, 0, 8, 0);
    post_read(2, 8, 8, 0);
    (void)expect_read(1, 8);
    second = expect_read(2, 8);
    give_response(second, 0, 8, true);
    iw_expect_terminate(bed, DDP_TAGGED_STAG, VERBS_WC_BAD_RESPONSE);
}

static void test_a_fin_with_an_open_read_is_an_error(void **state)
{
    (void)state;
    iw_raw(bed);
    post_read(1, 0, 8, 0);
    iwarp_finished(&side->iwarp, IW_SLOT, bed->now_ns);
    iw_run(bed);
    iw_expect_event(side, RDMA_EVENT_QP_FATAL, VERBS_WC_BAD_RESPONSE);
    iw_expect_wc(side, 1, VERBS_WC_FLUSHED);
}

/* ---- Requests that fail. */

static void test_bad_requests_fail(void **state)
{
    static const struct {
        struct iw_wr wr;
        uint8_t status;
    } rows[] = {
        {{.opcode = 9}, VERBS_WC_LOCAL_OPERATION},
        {{.opcode = VERBS_WR_SEND, .len = 8, .lkey = 0x999},
         VERBS_WC_LOCAL_PROTECTION},
        {{.opcode = VERBS_WR_WRITE, .len = 8, .offset = IW_DATA_LEN},
         VERBS_WC_LOCAL_PROTECTION},
        {{.opcode = VERBS_WR_READ, .len = 8, .lkey = IW_READ_KEY},
         VERBS_WC_LOCAL_PROTECTION},
        {{.opcode = VERBS_WR_LOCAL_INV, .inv_key = 0x999},
         VERBS_WC_LOCAL_PROTECTION},
        {{.opcode = VERBS_WR_LOCAL_INV, .inv_key = IW_OTHER_PD_KEY},
         VERBS_WC_LOCAL_PROTECTION},
        {{.opcode = VERBS_WR_WRITE, .len = 0x80000001}, VERBS_WC_LOCAL_LENGTH},
    };

    for (unsigned int i = 0; i < ARRAY_LEN(rows); i++) {
        struct iw_fpdu fpdu;
        struct iw_wr wr = rows[i].wr;

        iw_raw(bed);
        iw_post(side, &(struct iw_wr){.opcode = VERBS_WR_SEND, .wr_id = 1});
        wr.wr_id = 2;
        iw_post(side, &wr);
        iw_post(side, &(struct iw_wr){.opcode = VERBS_WR_SEND, .wr_id = 3});
        iw_ring(side);
        iw_run(bed);
        expect_fpdu(&fpdu, RDMAP_SEND, 0);
        iw_expect_terminate(bed, RDMAP_LOCAL_CATASTROPHIC,
                            (enum verbs_wc_status)rows[i].status);
        iw_expect_wc(side, 1, VERBS_WC_SUCCESS);
        iw_expect_wc(side, 2, rows[i].status);
        iw_expect_wc(side, 3, VERBS_WC_FLUSHED);
        (void)teardown(state);
        (void)setup(state);
    }
}

static void test_a_local_invalidation_has_no_bytes(void **state)
{
    (void)state;
    iw_raw(bed);
    iw_send(side, &(struct iw_wr){.opcode = VERBS_WR_LOCAL_INV,
                                  .wr_id = 5,
                                  .inv_key = IW_WRITE_KEY});
    iw_expect_wc(side, 5, VERBS_WC_SUCCESS);
    assert_null(rdma_mr_find(side->objects, IW_WRITE_KEY));
    iw_expect_silence(bed);
}

/* Its memory is not registered any more when TCP asks for it. */
static void test_memory_that_is_gone_resets_the_stream(void **state)
{
    (void)state;
    iw_raw(bed);
    iw_post(side, &(struct iw_wr){.opcode = VERBS_WR_SEND,
                                  .wr_id = 5,
                                  .len = 8,
                                  .lkey = IW_WRITE_KEY});
    iw_ring(side);
    (void)iwarp_engine_ops.transmit(&side->iwarp, 9, bed->now_ns);
    assert_true(rdma_mr_destroy(side->objects, IW_WRITE_KEY >> 8));
    iw_run(bed);
    assert_true(side->has_rst);
    iw_expect_event(side, RDMA_EVENT_QP_FATAL, VERBS_WC_LOCAL_PROTECTION);
    iw_expect_wc(side, 5, VERBS_WC_FLUSHED);
}

static void test_a_drain_waits_for_the_last_ack(void **state)
{
    struct iw_event event;

    (void)state;
    iw_raw(bed);
    bed->holds_acks = true;
    iw_send(side, &(struct iw_wr){.opcode = VERBS_WR_SEND});
    iwarp_engine_ops.qp_drain(&side->iwarp, IW_SLOT);
    assert_false(iw_poll_event(side, &event));
    bed->holds_acks = false;
    iw_run(bed);
    iw_expect_event(side, RDMA_EVENT_QP_DRAINED, 0);
}

static void test_a_destroyed_queue_pair_resets_unread_bytes(void **state)
{
    (void)state;
    iw_raw(bed);
    bed->holds_acks = true;
    iw_send(side, &(struct iw_wr){.opcode = VERBS_WR_SEND});
    iwarp_engine_ops.qp_destroy(&side->iwarp, IW_SLOT);
    assert_true(side->has_rst && !side->has_fin && !side->is_attached);
    assert_false(side->objects->qps[IW_SLOT].exists);
    iw_run(bed);
}

static void test_an_error_state_flushes_later_requests(void **state)
{
    (void)state;
    iw_raw(bed);
    iw_recv(side, 1, 0, 64);
    assert_true(iw_modify(side, VERBS_QPS_ERROR));
    assert_true(side->has_fin && !side->is_attached);
    iw_expect_wc(side, 1, VERBS_WC_FLUSHED);
    iw_send(side, &(struct iw_wr){.opcode = VERBS_WR_SEND, .wr_id = 2});
    iw_expect_wc(side, 2, VERBS_WC_FLUSHED);
}
