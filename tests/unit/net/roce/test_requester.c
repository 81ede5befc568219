/* SPDX-License-Identifier: BSD-2-Clause */
/* The requester's packets, and its reaction to each response. */
#include <stdarg.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "lib/bytes.h"
#include "net/wire/psn.h"
#include "tests/test_fixture.h"
#include "raw.h"

enum { MTU = 256, OUR_PSN = RAW_PSN ^ 0x800000 };

static int setup(void **state)
{
    *state = raw_bed(&(struct bed_path){.retries = 2, .rnr_retries = 2});
    return 0;
}

static int teardown(void **state)
{
    bed_free(*state);
    return 0;
}

static void run_deferred(struct bed *bed)
{
    while (bed->side[1].deferred) {
        bed->side[1].deferred = false;
        rnic_run(bed->side[1].rnic);
    }
}

static void post_wr(struct bed *bed, const struct bed_wr *wr)
{
    struct bed_wr signaled = *wr;

    signaled.flags |= RNIC_WR_SIGNALED;
    bed_send(&bed->side[1], 0, &signaled);
    run_deferred(bed);
}

static void send_answer(struct bed *bed, enum aeth_kind kind, uint8_t value,
                        uint32_t psn)
{
    uint8_t ext[AETH_LEN];

    aeth_emit(&(struct aeth){.kind = kind, .value = value}, ext);
    raw_send(bed,
             &(struct raw){.opcode = RC_ACKNOWLEDGE, .psn = psn, .ext = ext});
}

/* Take all sent packets.  @return their number; *last is the last opcode */
static unsigned int drain_sent(struct bed *bed, uint8_t *last)
{
    struct raw_reply reply;
    unsigned int n = 0;

    while (raw_take(bed, &reply)) {
        n++;
        if (last != NULL) {
            *last = reply.bth.opcode;
        }
    }
    return n;
}

static void expect_completion(struct bed *bed, uint64_t wr_id, uint8_t status)
{
    struct bed_wc wc;

    assert_true(bed_poll(&bed->side[1], &wc));
    assert_int_equal(wc.wr_id, wr_id);
    assert_int_equal(wc.status, status);
}

static void expect_nothing(struct bed *bed)
{
    struct bed_wc wc;

    assert_false(bed_poll(&bed->side[1], &wc));
}

static void fire_timer(struct bed *bed)
{
    assert_int_not_equal(bed->side[1].timer_ns, DEV_NO_DEADLINE);
    bed->now_ns = bed->side[1].timer_ns;
    rnic_timer(bed->side[1].rnic);
    run_deferred(bed);
}

static void test_only_as_many_reads_as_agreed_are_outstanding(void **state)
{
    struct bed *bed = *state;
    uint8_t ext[AETH_LEN];

    for (uint64_t i = 0; i < 6; i++) {
        post_wr(bed,
                &(struct bed_wr){.opcode = RNIC_WR_READ, .wr_id = i, .len = 4});
    }
    post_wr(bed, &(struct bed_wr){.opcode = RNIC_WR_WRITE, .wr_id = 6});
    assert_int_equal(drain_sent(bed, NULL), 4);
    aeth_emit(&(struct aeth){.value = 31}, ext);
    for (uint32_t i = 0; i < 6; i++) {
        raw_send(bed, &(struct raw){.opcode = RC_READ_RESPONSE_ONLY,
                                    .psn = OUR_PSN + i,
                                    .ext = ext,
                                    .len = 4});
        /* the next READ, and after the last one the WRITE */
        assert_int_equal(drain_sent(bed, NULL), i == 0 ? 1 : i == 1 ? 2 : 0);
        expect_completion(bed, i, RNIC_WC_SUCCESS);
    }
    send_answer(bed, AETH_ACK, 31, OUR_PSN + 6);
    expect_completion(bed, 6, RNIC_WC_SUCCESS);
}

static void test_a_fence_waits_for_reads(void **state)
{
    struct bed *bed = *state;
    uint8_t ext[AETH_LEN] = {0};

    post_wr(bed, &(struct bed_wr){.opcode = RNIC_WR_READ, .len = 4});
    post_wr(bed,
            &(struct bed_wr){.opcode = RNIC_WR_WRITE, .flags = RNIC_WR_FENCE});
    assert_int_equal(drain_sent(bed, NULL), 1);
    raw_send(bed, &(struct raw){.opcode = RC_READ_RESPONSE_ONLY,
                                .psn = OUR_PSN,
                                .ext = ext,
                                .len = 4});
    assert_int_equal(drain_sent(bed, NULL), 1);
}

static void test_long_messages_request_acknowledgements_midway(void **state)
{
    struct bed *bed = *state;
    struct raw_reply reply;
    unsigned int sent = 0;

    post_wr(bed, &(struct bed_wr){.opcode = RNIC_WR_WRITE, .len = 300 * MTU});
    for (uint32_t acked = 0; acked < 300; acked += 64) {
        while (raw_take(bed, &reply)) {
            sent++;
            assert_int_equal(reply.bth.psn, OUR_PSN + sent - 1);
            assert_int_equal(reply.bth.ack_requested,
                             sent % 64 == 0 || sent == 300);
            assert_int_equal(reply.bth.opcode, sent == 1     ? RC_WRITE_FIRST
                                               : sent == 300 ? RC_WRITE_LAST
                                                             : RC_WRITE_MIDDLE);
        }
        /* never more than the window */
        assert_int_equal(sent, MIN(acked + 128, 300u));
        send_answer(bed, AETH_ACK, 31, OUR_PSN + MIN(acked + 63, 299u));
    }
    expect_completion(bed, 0, RNIC_WC_SUCCESS);
}

/* A WRITE and the SEND linked to it are acknowledged together. */
static void test_a_linked_group_requests_one_acknowledgement(void **state)
{
    struct bed *bed = *state;
    struct raw_reply reply;
    unsigned int sent = 0, asked = 0;

    for (unsigned int again = 0; again < 2; again++) {
        if (again == 0) {
            bed_send(&bed->side[1], 0,
                     &(struct bed_wr){.opcode = RNIC_WR_WRITE, .len = 2 * MTU});
            post_wr(bed, &(struct bed_wr){.opcode = RNIC_WR_SEND,
                                          .flags = RNIC_WR_LINKED,
                                          .len = 16});
        } else {
            /* retransmitted packets all set AckReq */
            send_answer(bed, AETH_NAK, AETH_NAK_PSN_SEQUENCE, OUR_PSN);
        }
        for (sent = asked = 0; raw_take(bed, &reply); sent++) {
            asked += reply.bth.ack_requested;
        }
        assert_true(reply.bth.ack_requested);
        assert_int_equal(sent, 3);
        assert_int_equal(asked, 1 + again);
    }
    send_answer(bed, AETH_ACK, 31, OUR_PSN + 2);
    expect_completion(bed, 0, RNIC_WC_SUCCESS);
    /* a request that is not linked sets AckReq */
    bed_send(&bed->side[1], 0,
             &(struct bed_wr){.opcode = RNIC_WR_WRITE, .len = 4});
    post_wr(bed, &(struct bed_wr){.opcode = RNIC_WR_WRITE, .len = 4});
    for (sent = asked = 0; raw_take(bed, &reply); sent++) {
        asked += reply.bth.ack_requested;
    }
    assert_int_equal(sent, 2);
    assert_int_equal(asked, 2);
}

static void test_each_nak_has_its_status(void **state)
{
    static const uint8_t rows[][2] = {
        {AETH_NAK_INVALID_REQUEST, RNIC_WC_REMOTE_INVALID},
        {AETH_NAK_REMOTE_ACCESS, RNIC_WC_REMOTE_ACCESS},
        {AETH_NAK_REMOTE_OPERATION, RNIC_WC_REMOTE_OPERATION},
        {AETH_NAK_INVALID_RD_REQUEST, RNIC_WC_REMOTE_INVALID},
        {17, RNIC_WC_BAD_RESPONSE},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct bed *bed = raw_bed(&(struct bed_path){0});

        for (uint64_t n = 0; n < 3; n++) {
            post_wr(bed, &(struct bed_wr){.opcode = RNIC_WR_WRITE, .wr_id = n});
        }
        send_answer(bed, AETH_NAK, rows[i][0], OUR_PSN + 1);
        /* The NAK acknowledges the request before it. */
        expect_completion(bed, 0, RNIC_WC_SUCCESS);
        expect_completion(bed, 1, rows[i][1]);
        expect_completion(bed, 2, RNIC_WC_FLUSHED);
        assert_int_equal(bed_counter(&bed->side[1], RNIC_COUNT_RX_NAK), 1);
        assert_int_equal(bed_state(&bed->side[1], 0), RNIC_QPS_ERROR);
        bed_free(bed);
    }
}

static void test_a_sequence_nak_goes_back(void **state)
{
    struct bed *bed = *state;
    struct raw_reply reply;

    post_wr(bed, &(struct bed_wr){.opcode = RNIC_WR_WRITE, .len = 5 * MTU});
    assert_int_equal(drain_sent(bed, NULL), 5);
    send_answer(bed, AETH_NAK, AETH_NAK_PSN_SEQUENCE, OUR_PSN + 2);
    assert_true(raw_take(bed, &reply));
    assert_int_equal(reply.bth.psn, OUR_PSN + 2);
    assert_int_equal(reply.bth.opcode, RC_WRITE_MIDDLE);
    assert_int_equal(drain_sent(bed, NULL), 2);
    assert_int_equal(bed_counter(&bed->side[1], RNIC_COUNT_RETRANSMITTED), 3);
    send_answer(bed, AETH_ACK, 31, OUR_PSN + 4);
    expect_completion(bed, 0, RNIC_WC_SUCCESS);
    assert_int_equal(bed->side[1].timer_ns == DEV_NO_DEADLINE || bed_tick(bed),
                     1);
    assert_int_equal(bed_counter(&bed->side[1], RNIC_COUNT_TIMEOUTS), 0);
}

static void test_progress_resets_the_retry_count(void **state)
{
    struct bed *bed = *state;

    post_wr(bed, &(struct bed_wr){.opcode = RNIC_WR_WRITE, .len = 9 * MTU});
    for (uint32_t i = 0; i < 8;
         i++) { /* 2 retries without progress are allowed */
        fire_timer(bed);
        fire_timer(bed);
        send_answer(bed, AETH_ACK, 31, OUR_PSN + i);
    }
    expect_nothing(bed);
    fire_timer(bed);
    fire_timer(bed);
    expect_nothing(bed);
    fire_timer(bed);
    expect_completion(bed, 0, RNIC_WC_RETRY_EXCEEDED);
}

static void test_an_rnr_nak_sets_the_wait_and_counts_retries(void **state)
{
    struct bed *bed = *state;

    post_wr(bed, &(struct bed_wr){.opcode = RNIC_WR_SEND, .len = 4});
    for (unsigned int i = 0; i < 2; i++) { /* the agreed number of retries */
        uint64_t start = bed->now_ns;

        assert_int_equal(drain_sent(bed, NULL), i + 1);
        send_answer(bed, AETH_RNR_NAK, 14, OUR_PSN); /* 1.28 ms */
        post_wr(bed, &(struct bed_wr){.opcode = RNIC_WR_SEND, .len = 4});
        while (bed->now_ns < start + 1280000) {
            raw_expect_silence(bed);
            fire_timer(bed);
        }
        assert_int_equal(bed->now_ns, start + 1280000);
    }
    send_answer(bed, AETH_RNR_NAK, 14, OUR_PSN);
    expect_completion(bed, 0, RNIC_WC_RNR_EXCEEDED);
    assert_int_equal(bed_counter(&bed->side[1], RNIC_COUNT_RX_RNR), 3);
}

static void test_responses_to_no_request_are_dropped(void **state)
{
    struct bed *bed = *state;

    send_answer(bed, AETH_ACK, 31, OUR_PSN);
    send_answer(bed, AETH_NAK, AETH_NAK_REMOTE_ACCESS, OUR_PSN);
    post_wr(bed, &(struct bed_wr){.opcode = RNIC_WR_WRITE});
    send_answer(bed, AETH_ACK, 31, OUR_PSN + 1);
    send_answer(bed, AETH_ACK, 31, psn_add(OUR_PSN, PSN_MASK));
    expect_nothing(bed);
    send_answer(bed, AETH_ACK, 31, OUR_PSN);
    expect_completion(bed, 0, RNIC_WC_SUCCESS);
    assert_int_equal(bed_state(&bed->side[1], 0), RNIC_QPS_RTS);
}

static void test_a_response_of_the_wrong_kind_ends_the_connection(void **state)
{
    static const struct raw rows[] = {
        {.opcode = RC_READ_RESPONSE_ONLY, .len = 5},
        {.opcode = RC_READ_RESPONSE_FIRST, .len = 4},
        {.opcode = RC_READ_RESPONSE_MIDDLE, .len = 4},
        {.opcode = RC_READ_RESPONSE_LAST, .len = 0},
    };

    (void)state;
    for (size_t i = 0; i < 2 * ARRAY_LEN(rows); i++) {
        struct bed *bed = raw_bed(&(struct bed_path){0});
        uint8_t ext[AETH_LEN] = {0};
        struct raw raw = rows[i / 2];
        bool is_read = i % 2;

        post_wr(bed, &(struct bed_wr){.opcode = is_read ? RNIC_WR_READ
                                                        : RNIC_WR_WRITE,
                                      .len = 4});
        raw.psn = OUR_PSN;
        raw.ext = ext;
        raw_send(bed, &raw);
        expect_completion(bed, 0, RNIC_WC_BAD_RESPONSE);
        bed_free(bed);
    }
}

static void test_an_ack_after_a_lost_read_repeats_the_read(void **state)
{
    struct bed *bed = *state;
    uint8_t ext[AETH_LEN] = {0};
    struct raw_reply reply;

    post_wr(bed, &(struct bed_wr){.opcode = RNIC_WR_READ, .len = 3 * MTU});
    post_wr(bed, &(struct bed_wr){.opcode = RNIC_WR_WRITE, .wr_id = 1});
    assert_int_equal(drain_sent(bed, NULL), 2);
    raw_send(bed, &(struct raw){.opcode = RC_READ_RESPONSE_FIRST,
                                .psn = OUR_PSN,
                                .ext = ext,
                                .len = MTU});
    send_answer(bed, AETH_ACK, 31, OUR_PSN + 3);
    /* The repetition is ignored. */
    send_answer(bed, AETH_ACK, 31, OUR_PSN + 3);
    assert_true(raw_take(bed, &reply));
    assert_int_equal(reply.bth.opcode, RC_READ_REQUEST);
    assert_int_equal(reply.bth.psn, OUR_PSN + 1);
    assert_int_equal(reply.reth.va, BED_DATA_ADDR + MTU);
    assert_int_equal(reply.reth.dma_len_bytes, 2 * MTU);
    assert_int_equal(drain_sent(bed, NULL), 1);
    raw_send(bed, &(struct raw){.opcode = RC_READ_RESPONSE_FIRST,
                                .psn = OUR_PSN + 1,
                                .ext = ext,
                                .len = MTU});
    raw_send(bed, &(struct raw){.opcode = RC_READ_RESPONSE_LAST,
                                .psn = OUR_PSN + 2,
                                .ext = ext,
                                .len = MTU});
    expect_completion(bed, 0, RNIC_WC_SUCCESS);
    send_answer(bed, AETH_ACK, 31, OUR_PSN + 3);
    expect_completion(bed, 1, RNIC_WC_SUCCESS);
}

/* ---- Invalid entries fail in their order. */

static uint8_t *last_wqe(struct bed *bed)
{
    uint32_t slot = (bed->side[1].sq_pi[0] - 1) & ((1u << BED_SQ_LOG2) - 1);

    return bed->side[1].dram + 0x20000 + slot * RNIC_SWQE_LEN;
}

static void test_bad_entries_fail_after_those_before_them(void **state)
{
    static const struct {
        uint8_t at, value, status;
    } rows[] = {
        {RNIC_SWQE_OPCODE, 5, RNIC_WC_LOCAL_OPERATION},
        {RNIC_SWQE_SGES, 5, RNIC_WC_LOCAL_OPERATION},
        {RNIC_SWQE_INLINE_LEN, 65, RNIC_WC_LOCAL_OPERATION},
        {RNIC_SWQE_AFTER_MEDIA, 1, RNIC_WC_LOCAL_OPERATION},
        {RNIC_SWQE_PI_ACTION, 1, RNIC_WC_LOCAL_OPERATION},
        {RNIC_SWQE_SGE + RNIC_SGE_LENGTH + 3, 0x90, RNIC_WC_LOCAL_LENGTH},
        {RNIC_SWQE_SGE + RNIC_SGE_LKEY, 0x99, RNIC_WC_LOCAL_PROTECTION},
        {RNIC_SWQE_SGE + RNIC_SGE_ADDR + 7, 1, RNIC_WC_LOCAL_PROTECTION},
        {RNIC_SWQE_SGE + RNIC_SGE_ADDR + 2, 0xff, RNIC_WC_LOCAL_PROTECTION},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct bed *bed = raw_bed(&(struct bed_path){0});
        const struct bed_wr wr = {
            .opcode = RNIC_WR_WRITE, .flags = RNIC_WR_SIGNALED, .len = 4};

        bed_post(&bed->side[1], 0, &wr);
        bed_post(&bed->side[1], 0, &wr);
        put_le64(last_wqe(bed) + RNIC_SWQE_WR_ID, 1);
        last_wqe(bed)[rows[i].at] = rows[i].value;
        bed_post(&bed->side[1], 0, &wr);
        bed_ring(&bed->side[1], 0);
        run_deferred(bed);
        assert_int_equal(drain_sent(bed, NULL), 1);
        expect_nothing(bed);
        send_answer(bed, AETH_ACK, 31, OUR_PSN);
        expect_completion(bed, 0, RNIC_WC_SUCCESS);
        expect_completion(bed, 1, rows[i].status);
        expect_completion(bed, 0, RNIC_WC_FLUSHED);
        bed_free(bed);
    }
}

/* Firmware changes an entry after its request was sent; when it is to be sent
 * again, it fails. */
static void fail_changed_entry(struct bed *bed, uint8_t at, uint8_t value)
{
    post_wr(bed,
            &(struct bed_wr){.opcode = RNIC_WR_WRITE, .wr_id = 7, .len = 4});
    assert_int_equal(drain_sent(bed, NULL), 1);
    expect_nothing(bed);
    last_wqe(bed)[at] = value;
    fire_timer(bed);
    assert_int_equal(drain_sent(bed, NULL), 0);
    expect_completion(bed, 7, RNIC_WC_LOCAL_OPERATION);
}

static void test_a_started_request_with_another_opcode_fails(void **state)
{
    fail_changed_entry(*state, RNIC_SWQE_OPCODE, RNIC_WR_SEND);
}

static void test_a_started_request_with_another_length_fails(void **state)
{
    fail_changed_entry(*state, RNIC_SWQE_SGES, 0);
}

static void test_a_started_request_that_becomes_invalid_fails(void **state)
{
    fail_changed_entry(*state, RNIC_SWQE_PI_ACTION, 1);
}

static void test_local_invalidate_is_executed_in_order(void **state)
{
    struct bed *bed = *state;

    post_wr(bed, &(struct bed_wr){.opcode = RNIC_WR_WRITE, .wr_id = 1});
    post_wr(bed, &(struct bed_wr){.opcode = RNIC_WR_LOCAL_INV,
                                  .wr_id = 2,
                                  .inv_key = BED_REMOTE_KEY});
    expect_nothing(bed);
    send_answer(bed, AETH_ACK, 31, OUR_PSN);
    expect_completion(bed, 1, RNIC_WC_SUCCESS);
    expect_completion(bed, 2, RNIC_WC_SUCCESS);
    post_wr(bed, &(struct bed_wr){.opcode = RNIC_WR_LOCAL_INV,
                                  .wr_id = 3,
                                  .inv_key = BED_REMOTE_KEY});
    /* Its key was invalidated before. */
    expect_completion(bed, 3, RNIC_WC_LOCAL_PROTECTION);
}

/* After its region is destroyed, the data of a READ is not written. */
static void test_a_region_may_be_destroyed_while_a_read_fills_it(void **state)
{
    struct bed *bed = *state;
    struct bed_side *side = &bed->side[1];
    uint8_t ext[AETH_LEN] = {0};

    memset(bed_data(side, 0), 0x11, 3 * MTU);
    post_wr(bed, &(struct bed_wr){.opcode = RNIC_WR_READ,
                                  .len = 3 * MTU,
                                  .lkey = BED_REMOTE_KEY,
                                  .wr_id = 5});
    post_wr(bed, &(struct bed_wr){.opcode = RNIC_WR_WRITE, .wr_id = 6});
    raw_send(bed, &(struct raw){.opcode = RC_READ_RESPONSE_FIRST,
                                .psn = OUR_PSN,
                                .ext = ext,
                                .len = MTU,
                                .fill = 0x22});
    assert_int_equal(*bed_data(side, MTU - 1), 0x22);
    assert_int_equal(
        bed_command(side, RNIC_CMD_MR_DESTROY, BED_REMOTE_KEY >> 8, NULL, NULL),
        RNIC_CMD_OK);
    raw_send(bed, &(struct raw){.opcode = RC_READ_RESPONSE_MIDDLE,
                                .psn = OUR_PSN + 1,
                                .ext = ext,
                                .len = MTU,
                                .fill = 0x22});
    assert_int_equal(*bed_data(side, MTU), 0x11);
    expect_completion(bed, 5, RNIC_WC_LOCAL_PROTECTION);
    expect_completion(bed, 6, RNIC_WC_FLUSHED);
    assert_int_equal(bed_state(side, 0), RNIC_QPS_ERROR);
}

static void set_address(struct bed_side *side, bool is_set)
{
    struct ip_addr ours = ip_addr_from_v4(0x0a000002);
    uint8_t args[RNIC_CMD_LEN] = {0};

    args[RNIC_LADDR_MAC] = 2;
    args[RNIC_LADDR_MAC + 5] = 16;
    memcpy(args + RNIC_LADDR_IP, ours.bytes, 16);
    put_le16(args + RNIC_LADDR_VLAN, 0xffff);
    assert_int_equal(
        bed_command(side, is_set ? RNIC_CMD_LADDR_SET : RNIC_CMD_LADDR_CLEAR, 0,
                    args, NULL),
        RNIC_CMD_OK);
}

/* Without an address, packets count as sent and lost. */
static void test_a_request_without_an_address_is_retried(void **state)
{
    struct bed *bed = *state;
    struct raw_reply reply;

    set_address(&bed->side[1], false);
    post_wr(bed, &(struct bed_wr){.opcode = RNIC_WR_WRITE, .len = 3 * MTU});
    raw_expect_silence(bed);
    fire_timer(bed);
    raw_expect_silence(bed);
    set_address(&bed->side[1], true);
    fire_timer(bed);
    for (uint32_t k = 0; k < 3; k++) {
        assert_true(raw_take(bed, &reply));
        assert_int_equal(reply.bth.psn, OUR_PSN + k);
    }
    send_answer(bed, AETH_ACK, 31, OUR_PSN + 2);
    expect_completion(bed, 0, RNIC_WC_SUCCESS);

    set_address(&bed->side[1], false); /* permanently; two retries follow */
    post_wr(bed, &(struct bed_wr){.opcode = RNIC_WR_WRITE, .wr_id = 1});
    fire_timer(bed);
    fire_timer(bed);
    expect_nothing(bed);
    fire_timer(bed);
    expect_completion(bed, 1, RNIC_WC_RETRY_EXCEEDED);
    assert_int_equal(bed_state(&bed->side[1], 0), RNIC_QPS_ERROR);
}

/* An ACK arrives during a retransmission, which continues after the packets
 * that are acknowledged. */
static void test_a_late_ack_shortens_a_retransmission(void **state)
{
    struct bed *bed = *state;
    struct bed_side *side = &bed->side[1];
    struct raw_reply reply;

    post_wr(bed, &(struct bed_wr){.opcode = RNIC_WR_WRITE, .len = 2 * MTU});
    post_wr(bed, &(struct bed_wr){
                     .opcode = RNIC_WR_WRITE, .len = 2 * MTU, .wr_id = 1});
    assert_int_equal(drain_sent(bed, NULL), 4);
    side->tx_room = 0;
    fire_timer(bed); /* goes back to the first, but the port is full */
    raw_expect_silence(bed);
    send_answer(bed, AETH_ACK, 31, OUR_PSN + 2);
    expect_completion(bed, 0, RNIC_WC_SUCCESS);
    expect_nothing(bed);
    side->tx_room = UINT32_MAX;
    rnic_port_ready(side->rnic, 0);
    run_deferred(bed);
    /* The next packet is the second one of the second request. */
    assert_true(raw_take(bed, &reply));
    assert_int_equal(reply.bth.psn, OUR_PSN + 3);
    assert_int_equal(reply.bth.opcode, RC_WRITE_LAST);
    raw_expect_silence(bed);
    send_answer(bed, AETH_ACK, 31, OUR_PSN + 3);
    expect_completion(bed, 1, RNIC_WC_SUCCESS);
}

/* ---- Datagrams. */

static void test_a_datagram_may_have_inline_data(void **state)
{
    struct bed *bed = *state;
    struct bed_wc wc;

    bed_create_ud(&bed->side[0]);
    bed_create_ud(&bed->side[1]);
    bed_recv(&bed->side[1], BED_UD, 7, 0, 1000);
    bed_recv(&bed->side[1], BED_UD, 8, 1000, 1000);
    bed_send(&bed->side[0], BED_UD,
             &(struct bed_wr){.opcode = RNIC_WR_SEND,
                              .flags = RNIC_WR_SIGNALED | RNIC_WR_INLINE,
                              .inline_data = (const uint8_t *)"hello",
                              .len = 5,
                              .wr_id = 1});
    bed_settle(bed);
    assert_true(bed_poll(&bed->side[1], &wc));
    assert_int_equal(wc.wr_id, 7);
    assert_int_equal(wc.len, 64 + 5);
    assert_memory_equal(bed_data(&bed->side[1], 64), "hello", 5);
    assert_true(bed_poll(&bed->side[0], &wc));
    assert_int_equal(wc.status, RNIC_WC_SUCCESS);
}

/* The datagrams before the invalid one are sent, and those after it are
 * flushed. */
static void test_an_invalid_datagram_fails_in_order(void **state)
{
    struct bed *bed = *state;
    struct bed_wc wc;

    bed_create_ud(&bed->side[0]);
    bed_create_ud(&bed->side[1]);
    for (uint32_t i = 0; i < 3; i++) {
        bed_recv(&bed->side[1], BED_UD, 7 + i, 1000 * i, 1000);
        bed_post(&bed->side[0], BED_UD,
                 &(struct bed_wr){.opcode = RNIC_WR_SEND,
                                  .flags = RNIC_WR_SIGNALED,
                                  .lkey = i == 1 ? 0x3000042 : 0,
                                  .len = 100,
                                  .wr_id = i});
    }
    bed_ring(&bed->side[0], BED_UD);
    bed_settle(bed);
    assert_true(bed_poll(&bed->side[1], &wc));
    assert_int_equal(wc.wr_id, 7);
    assert_false(bed_poll(&bed->side[1], &wc));
    for (uint32_t i = 0; i < 3; i++) {
        assert_true(bed_poll(&bed->side[0], &wc));
        assert_int_equal(wc.wr_id, i);
        assert_int_equal(wc.status, i == 0   ? RNIC_WC_SUCCESS
                                    : i == 1 ? RNIC_WC_LOCAL_PROTECTION
                                             : RNIC_WC_FLUSHED);
    }
}

static void send_datagram(struct bed *bed, uint64_t wr_id)
{
    bed_send(&bed->side[1], BED_UD,
             &(struct bed_wr){.opcode = RNIC_WR_SEND,
                              .flags = RNIC_WR_SIGNALED,
                              .neigh = (uint16_t)wr_id,
                              .len = 100,
                              .wr_id = wr_id});
    run_deferred(bed);
}

/* A dropped datagram must not leave its queue pair in the queue of that
 * port. */
static void test_datagrams_dropped_at_one_port_do_not_hold_up_the_other(
    void **state)
{
    struct bed *bed = *state;
    struct bed_side *side = &bed->side[1];
    struct raw_reply reply;
    struct bed_wc wc;

    bed_create_ud(side);
    side->tx_room = 0; /* port 0 takes no more frames */
    send_datagram(bed, 0);
    assert_false(bed_poll(side, &wc));
    bed->now_ns += 600000000;
    send_datagram(bed, 0); /* its datagrams are dropped */
    assert_true(bed_poll(side, &wc));
    assert_true(bed_poll(side, &wc));
    raw_expect_silence(bed);
    side->tx_room = UINT32_MAX; /* for port 1; port 0 is still blocked */
    send_datagram(bed, 1);
    assert_true(raw_take(bed, &reply));
    assert_true(bed_poll(side, &wc));
    assert_int_equal(wc.wr_id, 1);
}

static void test_a_send_queue_may_wrap_many_times(void **state)
{
    struct bed *bed = *state;
    struct bed_wc wc;

    for (uint32_t i = 0; i < 1000; i++) {
        post_wr(bed, &(struct bed_wr){.opcode = RNIC_WR_WRITE, .wr_id = i});
        send_answer(bed, AETH_ACK, 31, OUR_PSN + i);
        assert_true(bed_poll(&bed->side[1], &wc));
        assert_int_equal(wc.wr_id, i);
        assert_int_equal(wc.wqe, i);
        (void)drain_sent(bed, NULL);
    }
}

static void test_an_overfull_send_queue_ends_the_queue_pair(void **state)
{
    struct bed *bed = *state;

    bed->side[1].sq_pi[0] = (1u << BED_SQ_LOG2) + 1;
    bed_ring(&bed->side[1], 0);
    run_deferred(bed);
    assert_int_equal(bed_state(&bed->side[1], 0), RNIC_QPS_ERROR);
    raw_expect_silence(bed);
}

TEST_FIXTURE(setup, teardown)
