/* SPDX-License-Identifier: BSD-2-Clause */
/* What the requester sends, and what each answer makes it do. */
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

static void run(struct bed *bed)
{
    while (bed->side[1].deferred) {
        bed->side[1].deferred = false;
        rnic_run(bed->side[1].rnic);
    }
}

static void post(struct bed *bed, const struct bed_wr *wr)
{
    struct bed_wr signaled = *wr;

    signaled.flags |= RNIC_WR_SIGNALED;
    bed_send(&bed->side[1], 0, &signaled);
    run(bed);
}

static void answer(struct bed *bed, enum aeth_kind kind, uint8_t value,
                   uint32_t psn)
{
    uint8_t ext[AETH_LEN];

    aeth_emit(&(struct aeth){.kind = kind, .value = value}, ext);
    raw_send(bed,
             &(struct raw){.opcode = RC_ACKNOWLEDGE, .psn = psn, .ext = ext});
}

/* Take what was sent; how many, and the opcode of the last. */
static unsigned int drain(struct bed *bed, uint8_t *last)
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

static void expect(struct bed *bed, uint64_t wr_id, uint8_t status)
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

static void tick(struct bed *bed)
{
    assert_int_not_equal(bed->side[1].timer_ns, DEV_NO_DEADLINE);
    bed->now_ns = bed->side[1].timer_ns;
    rnic_timer(bed->side[1].rnic);
    run(bed);
}

static void test_only_as_many_reads_as_agreed_are_outstanding(void **state)
{
    struct bed *bed = *state;
    uint8_t ext[AETH_LEN];

    for (uint64_t i = 0; i < 6; i++) {
        post(bed,
             &(struct bed_wr){.opcode = RNIC_WR_READ, .wr_id = i, .len = 4});
    }
    post(bed, &(struct bed_wr){.opcode = RNIC_WR_WRITE, .wr_id = 6});
    assert_int_equal(drain(bed, NULL), 4);
    aeth_emit(&(struct aeth){.value = 31}, ext);
    for (uint32_t i = 0; i < 6; i++) {
        raw_send(bed, &(struct raw){.opcode = RC_READ_RESPONSE_ONLY,
                                    .psn = OUR_PSN + i,
                                    .ext = ext,
                                    .len = 4});
        /* the next READ, and behind the last the WRITE */
        assert_int_equal(drain(bed, NULL), i == 0 ? 1 : i == 1 ? 2 : 0);
        expect(bed, i, RNIC_WC_SUCCESS);
    }
    answer(bed, AETH_ACK, 31, OUR_PSN + 6);
    expect(bed, 6, RNIC_WC_SUCCESS);
}

static void test_a_fence_waits_for_reads(void **state)
{
    struct bed *bed = *state;
    uint8_t ext[AETH_LEN] = {0};

    post(bed, &(struct bed_wr){.opcode = RNIC_WR_READ, .len = 4});
    post(bed,
         &(struct bed_wr){.opcode = RNIC_WR_WRITE, .flags = RNIC_WR_FENCE});
    assert_int_equal(drain(bed, NULL), 1);
    raw_send(bed, &(struct raw){.opcode = RC_READ_RESPONSE_ONLY,
                                .psn = OUR_PSN,
                                .ext = ext,
                                .len = 4});
    assert_int_equal(drain(bed, NULL), 1);
}

static void test_long_messages_ask_for_acknowledgements_on_the_way(void **state)
{
    struct bed *bed = *state;
    struct raw_reply reply;
    unsigned int sent = 0;

    post(bed, &(struct bed_wr){.opcode = RNIC_WR_WRITE, .len = 300 * MTU});
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
        answer(bed, AETH_ACK, 31, OUR_PSN + MIN(acked + 63, 299u));
    }
    expect(bed, 0, RNIC_WC_SUCCESS);
}

/* A WRITE and the SEND that goes with it are acknowledged together. */
static void test_a_group_asks_for_one_acknowledgement(void **state)
{
    struct bed *bed = *state;
    struct raw_reply reply;
    unsigned int sent = 0, asked = 0;

    for (unsigned int again = 0; again < 2; again++) {
        if (again == 0) {
            bed_send(&bed->side[1], 0,
                     &(struct bed_wr){.opcode = RNIC_WR_WRITE, .len = 2 * MTU});
            post(bed, &(struct bed_wr){.opcode = RNIC_WR_SEND,
                                       .flags = RNIC_WR_LINKED,
                                       .len = 16});
        } else {
            /* sent again, each asks: something went wrong */
            answer(bed, AETH_NAK, AETH_NAK_PSN_SEQUENCE, OUR_PSN);
        }
        for (sent = asked = 0; raw_take(bed, &reply); sent++) {
            asked += reply.bth.ack_requested;
        }
        assert_true(reply.bth.ack_requested);
        assert_int_equal(sent, 3);
        assert_int_equal(asked, 1 + again);
    }
    answer(bed, AETH_ACK, 31, OUR_PSN + 2);
    expect(bed, 0, RNIC_WC_SUCCESS);
    /* one that stands alone is asked about */
    bed_send(&bed->side[1], 0,
             &(struct bed_wr){.opcode = RNIC_WR_WRITE, .len = 4});
    post(bed, &(struct bed_wr){.opcode = RNIC_WR_WRITE, .len = 4});
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
            post(bed, &(struct bed_wr){.opcode = RNIC_WR_WRITE, .wr_id = n});
        }
        answer(bed, AETH_NAK, rows[i][0], OUR_PSN + 1);
        expect(bed, 0, RNIC_WC_SUCCESS); /* what is before is acknowledged */
        expect(bed, 1, rows[i][1]);
        expect(bed, 2, RNIC_WC_FLUSHED);
        assert_int_equal(bed_counter(&bed->side[1], RNIC_COUNT_RX_NAK), 1);
        assert_int_equal(bed_state(&bed->side[1], 0), RNIC_QPS_ERROR);
        bed_free(bed);
    }
}

static void test_a_sequence_nak_goes_back(void **state)
{
    struct bed *bed = *state;
    struct raw_reply reply;

    post(bed, &(struct bed_wr){.opcode = RNIC_WR_WRITE, .len = 5 * MTU});
    assert_int_equal(drain(bed, NULL), 5);
    answer(bed, AETH_NAK, AETH_NAK_PSN_SEQUENCE, OUR_PSN + 2);
    assert_true(raw_take(bed, &reply));
    assert_int_equal(reply.bth.psn, OUR_PSN + 2);
    assert_int_equal(reply.bth.opcode, RC_WRITE_MIDDLE);
    assert_int_equal(drain(bed, NULL), 2);
    assert_int_equal(bed_counter(&bed->side[1], RNIC_COUNT_RETRANSMITTED), 3);
    answer(bed, AETH_ACK, 31, OUR_PSN + 4);
    expect(bed, 0, RNIC_WC_SUCCESS);
    assert_int_equal(bed->side[1].timer_ns == DEV_NO_DEADLINE || bed_tick(bed),
                     1);
    assert_int_equal(bed_counter(&bed->side[1], RNIC_COUNT_TIMEOUTS), 0);
}

static void test_progress_gives_the_retries_back(void **state)
{
    struct bed *bed = *state;

    post(bed, &(struct bed_wr){.opcode = RNIC_WR_WRITE, .len = 9 * MTU});
    for (uint32_t i = 0; i < 8; i++) { /* 2 retries are allowed in a row */
        tick(bed);
        tick(bed);
        answer(bed, AETH_ACK, 31, OUR_PSN + i);
    }
    expect_nothing(bed);
    tick(bed);
    tick(bed);
    expect_nothing(bed);
    tick(bed);
    expect(bed, 0, RNIC_WC_RETRY_EXCEEDED);
}

static void test_rnr_waits_as_long_as_told_and_so_often(void **state)
{
    struct bed *bed = *state;

    post(bed, &(struct bed_wr){.opcode = RNIC_WR_SEND, .len = 4});
    for (unsigned int i = 0; i < 2; i++) { /* as often as agreed */
        uint64_t start = bed->now_ns;

        assert_int_equal(drain(bed, NULL), i + 1);
        answer(bed, AETH_RNR_NAK, 14, OUR_PSN); /* 1.28 ms */
        post(bed, &(struct bed_wr){.opcode = RNIC_WR_SEND, .len = 4});
        while (bed->now_ns < start + 1280000) {
            raw_expect_silence(bed);
            tick(bed);
        }
        assert_int_equal(bed->now_ns, start + 1280000);
    }
    answer(bed, AETH_RNR_NAK, 14, OUR_PSN);
    expect(bed, 0, RNIC_WC_RNR_EXCEEDED);
    assert_int_equal(bed_counter(&bed->side[1], RNIC_COUNT_RX_RNR), 3);
}

static void test_answers_to_nothing_are_dropped(void **state)
{
    struct bed *bed = *state;

    answer(bed, AETH_ACK, 31, OUR_PSN);
    answer(bed, AETH_NAK, AETH_NAK_REMOTE_ACCESS, OUR_PSN);
    post(bed, &(struct bed_wr){.opcode = RNIC_WR_WRITE});
    answer(bed, AETH_ACK, 31, OUR_PSN + 1);
    answer(bed, AETH_ACK, 31, psn_add(OUR_PSN, PSN_MASK));
    expect_nothing(bed);
    answer(bed, AETH_ACK, 31, OUR_PSN);
    expect(bed, 0, RNIC_WC_SUCCESS);
    assert_int_equal(bed_state(&bed->side[1], 0), RNIC_QPS_RTS);
}

static void test_a_response_that_fits_no_request_ends_it(void **state)
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

        post(bed,
             &(struct bed_wr){.opcode = is_read ? RNIC_WR_READ : RNIC_WR_WRITE,
                              .len = 4});
        raw.psn = OUR_PSN;
        raw.ext = ext;
        raw_send(bed, &raw);
        expect(bed, 0, RNIC_WC_BAD_RESPONSE);
        bed_free(bed);
    }
}

static void test_an_ack_beyond_a_lost_read_asks_for_it_again(void **state)
{
    struct bed *bed = *state;
    uint8_t ext[AETH_LEN] = {0};
    struct raw_reply reply;

    post(bed, &(struct bed_wr){.opcode = RNIC_WR_READ, .len = 3 * MTU});
    post(bed, &(struct bed_wr){.opcode = RNIC_WR_WRITE, .wr_id = 1});
    assert_int_equal(drain(bed, NULL), 2);
    raw_send(bed, &(struct raw){.opcode = RC_READ_RESPONSE_FIRST,
                                .psn = OUR_PSN,
                                .ext = ext,
                                .len = MTU});
    answer(bed, AETH_ACK, 31, OUR_PSN + 3);
    answer(bed, AETH_ACK, 31, OUR_PSN + 3); /* once is enough */
    assert_true(raw_take(bed, &reply));
    assert_int_equal(reply.bth.opcode, RC_READ_REQUEST);
    assert_int_equal(reply.bth.psn, OUR_PSN + 1);
    assert_int_equal(reply.reth.va, BED_DATA_ADDR + MTU);
    assert_int_equal(reply.reth.dma_len_bytes, 2 * MTU);
    assert_int_equal(drain(bed, NULL), 1);
    raw_send(bed, &(struct raw){.opcode = RC_READ_RESPONSE_FIRST,
                                .psn = OUR_PSN + 1,
                                .ext = ext,
                                .len = MTU});
    raw_send(bed, &(struct raw){.opcode = RC_READ_RESPONSE_LAST,
                                .psn = OUR_PSN + 2,
                                .ext = ext,
                                .len = MTU});
    expect(bed, 0, RNIC_WC_SUCCESS);
    answer(bed, AETH_ACK, 31, OUR_PSN + 3);
    expect(bed, 1, RNIC_WC_SUCCESS);
}

/* ---- Entries that make no sense fail in their turn. */

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
        run(bed);
        assert_int_equal(drain(bed, NULL), 1);
        expect_nothing(bed);
        answer(bed, AETH_ACK, 31, OUR_PSN);
        expect(bed, 0, RNIC_WC_SUCCESS);
        expect(bed, 1, rows[i].status);
        expect(bed, 0, RNIC_WC_FLUSHED);
        bed_free(bed);
    }
}

static void test_local_invalidate_takes_its_turn(void **state)
{
    struct bed *bed = *state;

    post(bed, &(struct bed_wr){.opcode = RNIC_WR_WRITE, .wr_id = 1});
    post(bed, &(struct bed_wr){.opcode = RNIC_WR_LOCAL_INV,
                               .wr_id = 2,
                               .inv_key = BED_REMOTE_KEY});
    expect_nothing(bed);
    answer(bed, AETH_ACK, 31, OUR_PSN);
    expect(bed, 1, RNIC_WC_SUCCESS);
    expect(bed, 2, RNIC_WC_SUCCESS);
    post(bed, &(struct bed_wr){.opcode = RNIC_WR_LOCAL_INV,
                               .wr_id = 3,
                               .inv_key = BED_REMOTE_KEY});
    expect(bed, 3, RNIC_WC_LOCAL_PROTECTION); /* gone already */
}

/* What a READ brings goes nowhere once its region is gone. */
static void test_a_region_goes_while_it_is_read_into(void **state)
{
    struct bed *bed = *state;
    struct bed_side *side = &bed->side[1];
    uint8_t ext[AETH_LEN] = {0};

    memset(bed_data(side, 0), 0x11, 3 * MTU);
    post(bed, &(struct bed_wr){.opcode = RNIC_WR_READ,
                               .len = 3 * MTU,
                               .lkey = BED_REMOTE_KEY,
                               .wr_id = 5});
    post(bed, &(struct bed_wr){.opcode = RNIC_WR_WRITE, .wr_id = 6});
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
    expect(bed, 5, RNIC_WC_LOCAL_PROTECTION);
    expect(bed, 6, RNIC_WC_FLUSHED);
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

/* Without an address it is as if all were lost on the way. */
static void test_a_request_without_an_address_is_tried_again(void **state)
{
    struct bed *bed = *state;
    struct raw_reply reply;

    set_address(&bed->side[1], false);
    post(bed, &(struct bed_wr){.opcode = RNIC_WR_WRITE, .len = 3 * MTU});
    raw_expect_silence(bed);
    tick(bed);
    raw_expect_silence(bed);
    set_address(&bed->side[1], true);
    tick(bed);
    for (uint32_t k = 0; k < 3; k++) {
        assert_true(raw_take(bed, &reply));
        assert_int_equal(reply.bth.psn, OUR_PSN + k);
    }
    answer(bed, AETH_ACK, 31, OUR_PSN + 2);
    expect(bed, 0, RNIC_WC_SUCCESS);

    set_address(&bed->side[1], false); /* for good, and twice tried again */
    post(bed, &(struct bed_wr){.opcode = RNIC_WR_WRITE, .wr_id = 1});
    tick(bed);
    tick(bed);
    expect_nothing(bed);
    tick(bed);
    expect(bed, 1, RNIC_WC_RETRY_EXCEEDED);
    assert_int_equal(bed_state(&bed->side[1], 0), RNIC_QPS_ERROR);
}

/* The answer to all of it comes while it goes back to the beginning. */
static void test_an_answer_overtakes_what_is_sent_again(void **state)
{
    struct bed *bed = *state;
    struct bed_side *side = &bed->side[1];
    struct raw_reply reply;

    post(bed, &(struct bed_wr){.opcode = RNIC_WR_WRITE, .len = 2 * MTU});
    post(bed,
         &(struct bed_wr){.opcode = RNIC_WR_WRITE, .len = 2 * MTU, .wr_id = 1});
    assert_int_equal(drain(bed, NULL), 4);
    side->tx_room = 0;
    tick(bed); /* back to the first, and no room for it */
    raw_expect_silence(bed);
    answer(bed, AETH_ACK, 31, OUR_PSN + 2);
    expect(bed, 0, RNIC_WC_SUCCESS);
    expect_nothing(bed);
    side->tx_room = UINT32_MAX;
    rnic_port_ready(side->rnic, 0);
    run(bed);
    assert_true(raw_take(bed, &reply)); /* the other half of the second */
    assert_int_equal(reply.bth.psn, OUR_PSN + 3);
    assert_int_equal(reply.bth.opcode, RC_WRITE_LAST);
    raw_expect_silence(bed);
    answer(bed, AETH_ACK, 31, OUR_PSN + 3);
    expect(bed, 1, RNIC_WC_SUCCESS);
}

/* ---- Datagrams. */

static void test_inline_data_of_a_datagram(void **state)
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

/* It fails in its turn: those before it have left, those after it never do. */
static void test_a_datagram_that_is_not_ours_to_send(void **state)
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
    run(bed);
}

/* The doorbell of a datagram that was dropped left the pair with the port. */
static void test_datagrams_dropped_at_one_port_do_not_hold_up_the_other(
    void **state)
{
    struct bed *bed = *state;
    struct bed_side *side = &bed->side[1];
    struct raw_reply reply;
    struct bed_wc wc;

    bed_create_ud(side);
    side->tx_room = 0; /* port 0 takes nothing from here on */
    send_datagram(bed, 0);
    assert_false(bed_poll(side, &wc));
    bed->now_ns += 600000000;
    send_datagram(bed, 0); /* and what it has is dropped */
    assert_true(bed_poll(side, &wc));
    assert_true(bed_poll(side, &wc));
    raw_expect_silence(bed);
    side->tx_room = UINT32_MAX; /* of port 1: port 0 has not said so */
    send_datagram(bed, 1);
    assert_true(raw_take(bed, &reply));
    assert_true(bed_poll(side, &wc));
    assert_int_equal(wc.wr_id, 1);
}

static void test_a_send_queue_can_go_round_many_times(void **state)
{
    struct bed *bed = *state;
    struct bed_wc wc;

    for (uint32_t i = 0; i < 1000; i++) {
        post(bed, &(struct bed_wr){.opcode = RNIC_WR_WRITE, .wr_id = i});
        answer(bed, AETH_ACK, 31, OUR_PSN + i);
        assert_true(bed_poll(&bed->side[1], &wc));
        assert_int_equal(wc.wr_id, i);
        assert_int_equal(wc.wqe, i);
        (void)drain(bed, NULL);
    }
}

static void test_an_overfull_send_queue_ends_the_pair(void **state)
{
    struct bed *bed = *state;

    bed->side[1].sq_pi[0] = (1u << BED_SQ_LOG2) + 1;
    bed_ring(&bed->side[1], 0);
    run(bed);
    assert_int_equal(bed_state(&bed->side[1], 0), RNIC_QPS_ERROR);
    raw_expect_silence(bed);
}

TEST_FIXTURE(setup, teardown)
