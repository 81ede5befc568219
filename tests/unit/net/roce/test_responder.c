/* SPDX-License-Identifier: BSD-2-Clause */
/* The responses of a reliable connection's responder to each request. */
#include <stdarg.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "lib/bytes.h"
#include "net/wire/psn.h"
#include "tests/test_fixture.h"
#include "raw.h"

enum { MTU = 256 };

static int setup(void **state)
{
    *state = raw_bed(&(struct bed_path){0});
    return 0;
}

static int teardown(void **state)
{
    bed_free(*state);
    return 0;
}

static struct reth whole_reth(uint32_t len)
{
    return (struct reth){
        .va = BED_DATA_ADDR, .rkey = BED_REMOTE_KEY, .dma_len_bytes = len};
}

static void recv_buffers(struct bed *bed)
{
    for (uint64_t i = 0; i < 4; i++) {
        bed_recv(&bed->side[1], 0, i, (uint32_t)i * 4096, 1000);
    }
}

static void expect_error(struct bed *bed, uint8_t status)
{
    struct bed_event event;

    assert_true(bed_poll_event(&bed->side[1], &event));
    assert_int_equal(event.type, RNIC_EVENT_QP_FATAL);
    assert_int_equal(event.info, status);
    assert_int_equal(bed_state(&bed->side[1], 0), RNIC_QPS_ERROR);
}

/* ---- Every opcode in every place of a message. */

enum place { BETWEEN, IN_SEND, IN_WRITE };

static void enter_place(struct bed *bed, enum place place, uint32_t write_len)
{
    recv_buffers(bed);
    if (place == IN_SEND) {
        raw_send(bed, &(struct raw){
                          .opcode = RC_SEND_FIRST, .psn = RAW_PSN, .len = MTU});
    } else if (place == IN_WRITE) {
        raw_send(bed, &(struct raw){.opcode = RC_WRITE_FIRST,
                                    .psn = RAW_PSN,
                                    .reth = whole_reth(write_len),
                                    .len = MTU});
    }
    raw_expect_silence(bed);
}

/* The specification's table 38 and section 9.7.4.1, written a second time. */
static bool opcode_fits(uint8_t opcode, enum place place)
{
    switch (opcode) {
    case RC_SEND_FIRST:
    case RC_SEND_ONLY:
    case RC_SEND_ONLY_INVALIDATE:
    case RC_WRITE_FIRST:
    case RC_WRITE_ONLY:
    case RC_READ_REQUEST:
        return place == BETWEEN;
    case RC_SEND_MIDDLE:
    case RC_SEND_LAST:
    case RC_SEND_LAST_INVALIDATE:
        return place == IN_SEND;
    case RC_WRITE_MIDDLE:
    case RC_WRITE_LAST:
        return place == IN_WRITE;
    default:
        return false;
    }
}

static bool is_request(uint8_t opcode)
{
    return opcode <= RC_READ_REQUEST || opcode == RC_COMPARE_SWAP ||
           opcode == RC_FETCH_ADD || opcode == RC_SEND_LAST_INVALIDATE ||
           opcode == RC_SEND_ONLY_INVALIDATE;
}

static uint32_t natural_len(uint8_t opcode)
{
    uint32_t flags = roce_opcodes[opcode].flags;

    if (flags & ROCE_NOTIFY) {
        return 16; /* reserved bytes */
    }
    return flags & (ROCE_READ_REQUEST | ROCE_ATOMIC) ? 0 : MTU;
}

static void check_opcode(uint8_t opcode, enum place place)
{
    struct bed *bed = raw_bed(&(struct bed_path){0});
    uint32_t psn = RAW_PSN + (place != BETWEEN);
    uint64_t malformed;
    struct raw_reply reply;
    uint8_t ext[IETH_LEN];

    ieth_emit(BED_REMOTE_KEY, ext);
    enter_place(bed, place, opcode == RC_WRITE_MIDDLE ? 3 * MTU : 2 * MTU);
    malformed = bed_counter(&bed->side[1], RNIC_COUNT_RX_MALFORMED);
    raw_send(bed,
             &(struct raw){
                 .opcode = opcode,
                 .psn = psn,
                 .ack_requested = true,
                 .ext = roce_opcodes[opcode].flags & ROCE_IETH ? ext : NULL,
                 .reth = whole_reth(
                     opcode == RC_WRITE_FIRST ? 2 * MTU : natural_len(opcode)),
                 .len = natural_len(opcode)});
    if (opcode_fits(opcode, place)) {
        assert_true(raw_take(bed, &reply));
        assert_int_equal(reply.aeth.kind, AETH_ACK);
        assert_int_equal(reply.bth.psn, psn);
    } else if (is_request(opcode)) {
        raw_expect(bed, AETH_NAK, AETH_NAK_INVALID_REQUEST, psn);
        expect_error(bed, RNIC_WC_REMOTE_INVALID);
        assert_int_equal(bed_counter(&bed->side[1], RNIC_COUNT_TX_NAK_OTHER),
                         1);
    } else {
        raw_expect_silence(bed);
        assert_int_equal(bed_state(&bed->side[1], 0), RNIC_QPS_RTS);
        if (opcode == CNP_NOTIFY) {
            assert_int_equal(bed_counter(&bed->side[1], RNIC_COUNT_RX_CNP), 1);
        } else if (!roce_opcode_is(opcode, ROCE_RESPONSE)) {
            assert_int_equal(
                bed_counter(&bed->side[1], RNIC_COUNT_RX_MALFORMED),
                malformed + 1);
        }
    }
    bed_free(bed);
}

static void test_every_opcode_in_every_place_of_a_message(void **state)
{
    (void)state;
    for (unsigned int opcode = 0; opcode < 256; opcode++) {
        check_opcode((uint8_t)opcode, BETWEEN);
        check_opcode((uint8_t)opcode, IN_SEND);
        check_opcode((uint8_t)opcode, IN_WRITE);
    }
}

/* ---- Lengths.  Spec: 9.7.4.1.6, 9.7.4.1.7. */

static void test_packets_of_invalid_length_are_refused(void **state)
{
    static const struct {
        enum place place;
        struct raw raw;
    } rows[] = {
        {BETWEEN, {.opcode = RC_SEND_FIRST, .len = MTU - 4}},
        {BETWEEN, {.opcode = RC_SEND_FIRST, .len = MTU + 4}},
        {BETWEEN, {.opcode = RC_SEND_ONLY, .len = MTU + 4}},
        {IN_SEND, {.opcode = RC_SEND_MIDDLE, .len = 4}},
        {IN_SEND, {.opcode = RC_SEND_MIDDLE, .len = MTU - 1}},
        {IN_SEND, {.opcode = RC_SEND_LAST, .len = 0}},
        {IN_SEND, {.opcode = RC_SEND_LAST, .len = MTU + 4}},
        {BETWEEN,
         {.opcode = RC_WRITE_ONLY, .len = 8, .reth = {.dma_len_bytes = 4}}},
        {BETWEEN,
         {.opcode = RC_WRITE_ONLY, .len = 4, .reth = {.dma_len_bytes = 8}}},
        {BETWEEN,
         {.opcode = RC_WRITE_FIRST,
          .len = MTU,
          .reth = {.dma_len_bytes = MTU}}},
        {IN_WRITE, {.opcode = RC_WRITE_MIDDLE, .len = MTU}},
        {IN_WRITE, {.opcode = RC_WRITE_LAST, .len = MTU - 1}},
        {BETWEEN, {.opcode = RC_READ_REQUEST, .len = 4}},
        {BETWEEN,
         {.opcode = RC_READ_REQUEST, .reth = {.dma_len_bytes = 0x80000001}}},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct bed *bed = raw_bed(&(struct bed_path){0});
        struct raw raw = rows[i].raw;

        enter_place(bed, rows[i].place, 2 * MTU);
        raw.psn = RAW_PSN + (rows[i].place != BETWEEN);
        raw.reth.va = BED_DATA_ADDR;
        raw.reth.rkey = BED_REMOTE_KEY;
        raw_send(bed, &raw);
        raw_expect(bed, AETH_NAK, AETH_NAK_INVALID_REQUEST, raw.psn);
        expect_error(bed, RNIC_WC_REMOTE_INVALID);
        bed_free(bed);
    }
}

static void test_a_message_longer_than_the_buffer_is_refused(void **state)
{
    struct bed *bed = *state;
    struct bed_wc wc;

    bed_recv(&bed->side[1], 0, 8, 0, MTU + 10);
    raw_send(bed, &(struct raw){
                      .opcode = RC_SEND_FIRST, .psn = RAW_PSN, .len = MTU});
    raw_send(bed, &(struct raw){
                      .opcode = RC_SEND_LAST, .psn = RAW_PSN + 1, .len = 11});
    raw_expect(bed, AETH_NAK, AETH_NAK_INVALID_REQUEST, RAW_PSN + 1);
    assert_true(bed_poll(&bed->side[1], &wc));
    assert_int_equal(wc.wr_id, 8);
    assert_int_equal(wc.status, RNIC_WC_LOCAL_LENGTH);
    assert_false(bed_poll(&bed->side[1], &wc));
    expect_error(bed, RNIC_WC_LOCAL_LENGTH);
    /* bytes beyond the buffer were not written */
    assert_int_equal(*bed_data(&bed->side[1], MTU), 0);
}

/* ---- Rights and bounds. */

static void test_access_without_rights_is_refused(void **state)
{
    static const struct {
        struct reth reth;
        uint8_t access;
    } rows[] = {
        {{BED_DATA_ADDR, BED_REMOTE_KEY ^ 1, 100}, 7}, /* variant */
        {{BED_DATA_ADDR, 0x3000042, 100}, 7},          /* no such index */
        {{BED_DATA_ADDR, BED_LOCAL_KEY, 100}, 7},      /* local only */
        {{BED_DATA_ADDR - 1, BED_REMOTE_KEY, 100}, 7},
        {{BED_DATA_ADDR + BED_DATA_LEN - 99, BED_REMOTE_KEY, 100}, 7},
        {{BED_DATA_ADDR + BED_DATA_LEN, BED_REMOTE_KEY, 100}, 7},
        {{UINT64_MAX - 10, BED_REMOTE_KEY, 100}, 7},
        {{BED_DATA_ADDR, BED_REMOTE_KEY, 100}, 1}, /* exceeds the QP's rights */
    };

    (void)state;
    for (size_t i = 0; i < 2 * ARRAY_LEN(rows); i++) {
        struct bed *bed =
            raw_bed(&(struct bed_path){.access = rows[i / 2].access});
        bool is_read = i % 2;

        raw_send(bed, &(struct raw){.opcode = is_read ? RC_READ_REQUEST
                                                      : RC_WRITE_ONLY,
                                    .psn = RAW_PSN,
                                    .reth = rows[i / 2].reth,
                                    .len = is_read ? 0 : 100});
        raw_expect(bed, AETH_NAK, AETH_NAK_REMOTE_ACCESS, RAW_PSN);
        expect_error(bed, RNIC_WC_REMOTE_ACCESS);
        bed_free(bed);
    }
}

static void test_an_empty_write_needs_no_key(void **state)
{
    struct bed *bed = *state;

    raw_send(bed, &(struct raw){.opcode = RC_WRITE_ONLY,
                                .psn = RAW_PSN,
                                .ack_requested = true});
    raw_expect(bed, AETH_ACK, AETH_CREDIT_UNLIMITED, RAW_PSN);
}

static void test_a_peer_may_invalidate_only_regions_it_has_rights_to(
    void **state)
{
    static const uint32_t keys[] = {
        BED_LOCAL_KEY,
        BED_REMOTE_KEY + 1, /* of an earlier region, which is dead */
        0,
        0xffffffff,
    };

    for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
        struct bed *bed = i == 0 ? *state : raw_bed(&(struct bed_path){0});
        uint8_t ext[IETH_LEN];

        recv_buffers(bed);
        ieth_emit(keys[i], ext);
        raw_send(bed, &(struct raw){.opcode = RC_SEND_ONLY_INVALIDATE,
                                    .psn = RAW_PSN,
                                    .ext = ext,
                                    .len = 4});
        raw_expect(bed, AETH_NAK, AETH_NAK_REMOTE_ACCESS, RAW_PSN);
        expect_error(bed, RNIC_WC_REMOTE_ACCESS);
        if (i != 0) {
            bed_free(bed);
        }
    }
}

static void test_an_invalid_receive_buffer_is_an_operational_error(void **state)
{
    struct bed *bed = *state;
    struct bed_wc wc;

    bed_recv(&bed->side[1], 0, 3, BED_DATA_LEN, 1000); /* beyond DRAM */
    raw_send(bed,
             &(struct raw){.opcode = RC_SEND_ONLY, .psn = RAW_PSN, .len = 100});
    raw_expect(bed, AETH_NAK, AETH_NAK_REMOTE_OPERATION, RAW_PSN);
    assert_true(bed_poll(&bed->side[1], &wc));
    assert_int_equal(wc.status, RNIC_WC_LOCAL_PROTECTION);
    expect_error(bed, RNIC_WC_LOCAL_PROTECTION);
}

/* ---- Sequence numbers. */

static void test_a_gap_gets_one_nak_until_it_is_filled(void **state)
{
    struct bed *bed = *state;
    struct raw write = {
        .opcode = RC_WRITE_ONLY, .psn = RAW_PSN + 2, .ack_requested = true};

    raw_send(bed, &write);
    raw_expect(bed, AETH_NAK, AETH_NAK_PSN_SEQUENCE, RAW_PSN);
    write.psn++;
    raw_send(bed, &write);
    raw_expect_silence(bed);
    write.psn = RAW_PSN;
    raw_send(bed, &write);
    raw_expect(bed, AETH_ACK, AETH_CREDIT_UNLIMITED, RAW_PSN);
    write.psn = RAW_PSN + 2;
    raw_send(bed, &write);
    raw_expect(bed, AETH_NAK, AETH_NAK_PSN_SEQUENCE, RAW_PSN + 1);
    assert_int_equal(bed_counter(&bed->side[1], RNIC_COUNT_RX_OUT_OF_ORDER), 3);
    assert_int_equal(bed_counter(&bed->side[1], RNIC_COUNT_TX_NAK_SEQUENCE), 2);
}

/* Receive WRITEs with these PSNs in one burst. */
static void burst_of_writes(struct bed *bed, const uint32_t *psns,
                            unsigned int count)
{
    struct frame_rx rx[4];
    uint8_t frame[4][256];

    assert_true(count <= ARRAY_LEN(rx));
    for (unsigned int i = 0; i < count; i++) {
        rx[i] = (struct frame_rx){
            .data = frame[i],
            .len_bytes = raw_build(bed,
                                   &(struct raw){.opcode = RC_WRITE_ONLY,
                                                 .psn = psns[i],
                                                 .ack_requested = true},
                                   frame[i])};
    }
    rnic_rx(bed->side[1].rnic, 0, rx, count);
}

/*
 * The missing packet arrives before the NAK for it was sent.  The packets that
 * overtook it were dropped, so the requester still needs a NAK.
 */
static void test_packets_dropped_after_a_gap_in_one_burst_get_a_nak(
    void **state)
{
    struct bed *bed = *state;

    burst_of_writes(bed, (const uint32_t[]){RAW_PSN + 1, RAW_PSN}, 2);
    raw_expect(bed, AETH_NAK, AETH_NAK_PSN_SEQUENCE, RAW_PSN + 1);
    burst_of_writes(bed, (const uint32_t[]){RAW_PSN + 1}, 1);
    raw_expect(bed, AETH_ACK, AETH_CREDIT_UNLIMITED, RAW_PSN + 1);
    /* All packets arrive in the end. */
    burst_of_writes(
        bed, (const uint32_t[]){RAW_PSN + 3, RAW_PSN + 2, RAW_PSN + 3}, 3);
    raw_expect(bed, AETH_ACK, AETH_CREDIT_UNLIMITED, RAW_PSN + 3);
    /* The last dropped packet matters, not the last one that arrived. */
    burst_of_writes(
        bed,
        (const uint32_t[]){RAW_PSN + 6, RAW_PSN + 5, RAW_PSN + 4, RAW_PSN + 5},
        4);
    raw_expect(bed, AETH_NAK, AETH_NAK_PSN_SEQUENCE, RAW_PSN + 6);
    burst_of_writes(bed, (const uint32_t[]){RAW_PSN + 6}, 1);
    raw_expect(bed, AETH_ACK, AETH_CREDIT_UNLIMITED, RAW_PSN + 6);
}

static void test_a_duplicate_is_acknowledged_but_not_executed(void **state)
{
    struct bed *bed = *state;
    struct bed_wc wc;
    struct raw send = {.opcode = RC_SEND_ONLY, .psn = RAW_PSN, .len = 20};

    recv_buffers(bed);
    raw_send(bed, &send);
    raw_expect_silence(bed); /* no packet set AckReq */
    send.fill = 0xff;
    raw_send(bed, &send);
    raw_expect(bed, AETH_ACK, AETH_CREDIT_UNLIMITED, RAW_PSN);
    assert_true(bed_poll(&bed->side[1], &wc));
    assert_false(bed_poll(&bed->side[1], &wc));
    assert_int_equal(*bed_data(&bed->side[1], 0), 0);
    assert_int_equal(bed_counter(&bed->side[1], RNIC_COUNT_RX_DUPLICATE), 1);
}

static void test_packets_after_an_rnr_nak_are_dropped_silently(void **state)
{
    struct bed *bed = *state;
    struct raw send = {.opcode = RC_SEND_ONLY, .psn = RAW_PSN, .len = 20};

    raw_send(bed, &send);
    raw_expect(bed, AETH_RNR_NAK, 1, RAW_PSN);
    send.psn++;
    raw_send(bed, &send);
    raw_expect_silence(bed);
    recv_buffers(bed);
    send.psn = RAW_PSN;
    send.ack_requested = true;
    raw_send(bed, &send);
    raw_expect(bed, AETH_ACK, AETH_CREDIT_UNLIMITED, RAW_PSN);
    assert_int_equal(bed_counter(&bed->side[1], RNIC_COUNT_TX_RNR), 1);
}

/* ---- READs. */

static void expect_read(struct bed *bed, uint32_t psn, uint32_t from,
                        uint32_t packets, uint32_t last_len)
{
    struct raw_reply reply;

    for (uint32_t k = from; k < packets; k++) {
        bool first = k == from, last = k + 1 == packets;

        assert_true(raw_take(bed, &reply));
        assert_int_equal(reply.bth.psn, psn_add(psn, k));
        assert_int_equal(reply.bth.opcode, first && last ? RC_READ_RESPONSE_ONLY
                                           : first ? RC_READ_RESPONSE_FIRST
                                           : last  ? RC_READ_RESPONSE_LAST
                                                   : RC_READ_RESPONSE_MIDDLE);
        assert_int_equal(reply.len, last ? last_len : MTU);
        assert_memory_equal(reply.payload, bed_data(&bed->side[1], k * MTU),
                            reply.len);
    }
}

static void test_a_read_may_be_repeated_from_any_packet(void **state)
{
    struct bed *bed = *state;
    const uint32_t len = 5 * MTU + 3;
    struct raw read = {
        .opcode = RC_READ_REQUEST, .psn = RAW_PSN, .reth = whole_reth(len)};

    bed_fill(&bed->side[1], 0, len, 4);
    raw_send(bed, &read);
    expect_read(bed, RAW_PSN, 0, 6, 3);
    raw_expect_silence(bed);
    for (uint32_t k = 0; k < 6; k++) {
        read.psn = RAW_PSN + k;
        read.reth.va = BED_DATA_ADDR + k * MTU;
        read.reth.dma_len_bytes = len - k * MTU;
        raw_send(bed, &read);
        expect_read(bed, RAW_PSN, k, 6, 3);
        raw_expect_silence(bed);
    }
    /* a repetition must not exceed the original READ */
    read.reth.dma_len_bytes++;
    raw_send(bed, &read);
    read.reth.dma_len_bytes--;
    read.reth.va -= 8;
    raw_send(bed, &read);
    raw_expect_silence(bed);
}

static void unblock_port(struct bed *bed, unsigned int room)
{
    struct bed_side *side = &bed->side[1];

    side->tx_room = room;
    rnic_port_ready(side->rnic, 0);
    while (side->deferred) {
        side->deferred = false;
        rnic_run(side->rnic);
    }
}

static const struct raw read_of_10 = {
    .opcode = RC_READ_REQUEST,
    .psn = RAW_PSN,
    .reth = {BED_DATA_ADDR, BED_REMOTE_KEY, 10 * MTU},
};

/* After the key is invalid, no data is sent, and a NAK names the PSN. */
static void test_a_region_may_be_destroyed_while_it_is_read(void **state)
{
    struct bed *bed = *state;
    struct raw_reply reply;

    bed_fill(&bed->side[1], 0, 10 * MTU, 4);
    bed->side[1].tx_room = 4;
    raw_send(bed, &read_of_10);
    for (uint32_t k = 0; k < 4; k++) {
        assert_true(raw_take(bed, &reply));
        assert_memory_equal(reply.payload, bed_data(&bed->side[1], k * MTU),
                            MTU);
    }
    raw_expect_silence(bed);
    assert_int_equal(bed_command(&bed->side[1], RNIC_CMD_MR_DESTROY,
                                 BED_REMOTE_KEY >> 8, NULL, NULL),
                     RNIC_CMD_OK);
    unblock_port(bed, 0); /* the port is still full: the NAK waits */
    raw_expect_silence(bed);
    unblock_port(bed, UINT32_MAX);
    raw_expect(bed, AETH_NAK, AETH_NAK_REMOTE_ACCESS, RAW_PSN + 4);
    expect_error(bed, RNIC_WC_REMOTE_ACCESS);
    assert_int_equal(bed_counter(&bed->side[1], RNIC_COUNT_TX_PACKETS), 5);
}

/* The queue pair fails while a burst with its own responses is built.  The port
 * takes half of that burst. */
static void test_frames_of_a_failed_queue_pair_are_not_resent_after_a_full_port(
    void **state)
{
    struct bed *bed = *state;
    struct raw_reply reply;
    uint8_t args[RNIC_CMD_LEN] = {0};
    struct raw read = read_of_10;
    uint32_t end = BED_DATA_LEN - 3 * MTU;

    /* The region that the READ reads is cut after two packets. */
    bed->side[1].tx_room = 1;
    read.reth.va = BED_DATA_ADDR + end - MTU;
    read.reth.dma_len_bytes = 4 * MTU;
    raw_send(bed, &read);
    assert_true(raw_take(bed, &reply));
    assert_int_equal(bed_command(&bed->side[1], RNIC_CMD_MR_DESTROY,
                                 BED_REMOTE_KEY >> 8, NULL, NULL),
                     RNIC_CMD_OK);
    args[RNIC_MR_ACCESS] = RNIC_ACCESS_REMOTE_READ;
    args[RNIC_MR_VARIANT] = (uint8_t)BED_REMOTE_KEY;
    put_le64(args + RNIC_MR_VA, BED_DATA_ADDR);
    put_le64(args + RNIC_MR_LENGTH, end + 2 * MTU);
    put_le64(args + RNIC_MR_DRAM, BED_DATA_ADDR);
    assert_int_equal(bed_command(&bed->side[1], RNIC_CMD_MR_CREATE,
                                 BED_REMOTE_KEY >> 8, args, NULL),
                     RNIC_CMD_OK);
    unblock_port(bed, 1);
    assert_true(raw_take(bed, &reply));
    assert_int_equal(reply.bth.opcode, RC_READ_RESPONSE_MIDDLE);
    assert_int_equal(reply.bth.psn, RAW_PSN + 1);
    raw_expect_silence(bed);
    unblock_port(bed, UINT32_MAX);
    raw_expect(bed, AETH_NAK, AETH_NAK_REMOTE_ACCESS, RAW_PSN + 3);
    expect_error(bed, RNIC_WC_REMOTE_ACCESS);
}

/* Without its address the responder sends nothing; the peer retries later. */
static void test_an_address_may_be_removed_while_a_read_is_answered(
    void **state)
{
    struct bed *bed = *state;
    struct bed_side *side = &bed->side[1];
    struct ip_addr ours = ip_addr_from_v4(0x0a000002);
    uint8_t args[RNIC_CMD_LEN] = {0};
    struct raw_reply reply;
    struct raw again = read_of_10;

    bed_fill(side, 0, 10 * MTU, 4);
    side->tx_room = 4;
    raw_send(bed, &read_of_10);
    for (uint32_t k = 0; k < 4; k++) {
        assert_true(raw_take(bed, &reply));
    }
    assert_int_equal(bed_command(side, RNIC_CMD_LADDR_CLEAR, 0, NULL, NULL),
                     RNIC_CMD_OK);
    unblock_port(bed, UINT32_MAX);
    raw_expect_silence(bed);
    args[RNIC_LADDR_MAC] = 2;
    args[RNIC_LADDR_MAC + 5] = 16;
    memcpy(args + RNIC_LADDR_IP, ours.bytes, 16);
    put_le16(args + RNIC_LADDR_VLAN, 0xffff);
    assert_int_equal(bed_command(side, RNIC_CMD_LADDR_SET, 0, args, NULL),
                     RNIC_CMD_OK);
    unblock_port(bed, UINT32_MAX);
    raw_expect_silence(bed);
    /* The READ does not block later requests either. */
    raw_send(bed, &(struct raw){.opcode = RC_WRITE_ONLY,
                                .psn = RAW_PSN + 10,
                                .ack_requested = true});
    raw_expect(bed, AETH_ACK, AETH_CREDIT_UNLIMITED, RAW_PSN + 10);
    again.psn += 4;
    again.reth.va += 4 * MTU;
    again.reth.dma_len_bytes -= 4 * MTU;
    raw_send(bed, &again);
    expect_read(bed, RAW_PSN, 4, 10, MTU);
    raw_expect_silence(bed);
}

/* The port is full when a request is refused. */
static void test_a_nak_waits_for_a_full_port(void **state)
{
    struct bed *bed = *state;
    struct raw write = {.opcode = RC_WRITE_ONLY, .psn = RAW_PSN + 1};

    bed->side[1].tx_room = 0;
    raw_send(bed, &write);
    raw_send(bed, &write); /* ignored: one NAK is enough */
    raw_expect_silence(bed);
    assert_int_equal(bed_counter(&bed->side[1], RNIC_COUNT_TX_NAK_SEQUENCE), 0);
    unblock_port(bed, 0);
    unblock_port(bed, UINT32_MAX);
    raw_expect(bed, AETH_NAK, AETH_NAK_PSN_SEQUENCE, RAW_PSN);
    assert_int_equal(bed_counter(&bed->side[1], RNIC_COUNT_TX_NAK_SEQUENCE), 1);
    unblock_port(bed, UINT32_MAX);
    raw_expect_silence(bed);
}

static void test_an_acknowledgement_never_overtakes_a_read(void **state)
{
    struct bed *bed = *state;
    struct raw_reply reply;
    uint8_t frame[2][5000];
    struct frame_rx rx[2];

    bed_fill(&bed->side[1], 0, 100, 4);
    rx[0] = (struct frame_rx){
        .data = frame[0],
        .len_bytes = raw_build(bed,
                               &(struct raw){.opcode = RC_READ_REQUEST,
                                             .psn = RAW_PSN,
                                             .reth = whole_reth(3 * MTU)},
                               frame[0])};
    rx[1] = (struct frame_rx){
        .data = frame[1],
        .len_bytes = raw_build(bed,
                               &(struct raw){.opcode = RC_WRITE_ONLY,
                                             .psn = RAW_PSN + 3,
                                             .ack_requested = true},
                               frame[1])};
    rnic_rx(bed->side[1].rnic, 0, rx, 2);
    expect_read(bed, RAW_PSN, 0, 3, MTU);
    assert_true(raw_take(bed, &reply));
    assert_int_equal(reply.bth.opcode, RC_ACKNOWLEDGE);
    assert_int_equal(reply.bth.psn, RAW_PSN + 3);
    assert_int_equal(reply.aeth.msn, 2);
}

static void test_more_reads_than_agreed_are_refused(void **state)
{
    struct bed *bed = *state;
    struct frame_rx rx[5];
    uint8_t frame[5][256];
    struct raw_reply reply;

    for (uint32_t i = 0; i < 5; i++) { /* 4 are agreed */
        rx[i] = (struct frame_rx){
            .data = frame[i],
            .len_bytes = raw_build(bed,
                                   &(struct raw){.opcode = RC_READ_REQUEST,
                                                 .psn = RAW_PSN + i,
                                                 .reth = whole_reth(4)},
                                   frame[i])};
    }
    rnic_rx(bed->side[1].rnic, 0, rx, 5);
    do {
        assert_true(raw_take(bed, &reply));
    } while (reply.bth.opcode != RC_ACKNOWLEDGE);
    assert_int_equal(reply.aeth.kind, AETH_NAK);
    assert_int_equal(reply.aeth.value, AETH_NAK_INVALID_REQUEST);
    expect_error(bed, RNIC_WC_REMOTE_INVALID);
}

/* Receive and answer `count` READs of one packet each, from RAW_PSN on. */
static void reads_answered(struct bed *bed, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        raw_send(bed, &(struct raw){.opcode = RC_READ_REQUEST,
                                    .psn = RAW_PSN + i,
                                    .reth = whole_reth(4)});
        expect_read(bed, RAW_PSN + i, 0, 1, 4);
    }
    raw_expect_silence(bed);
}

/* Receive READs of 4 bytes with these PSNs while the port is blocked. */
static void reads_arrive_blocked(struct bed *bed, const uint32_t *psns,
                                 uint32_t count)
{
    bed->side[1].tx_room = 0;
    for (uint32_t i = 0; i < count; i++) {
        raw_send(bed, &(struct raw){.opcode = RC_READ_REQUEST,
                                    .psn = psns[i],
                                    .reth = whole_reth(4)});
    }
    raw_expect_silence(bed);
}

static void test_a_repeated_read_does_not_count_against_the_depth(void **state)
{
    struct bed *bed = *state;
    const uint32_t psns[] = {RAW_PSN,     RAW_PSN + 4, RAW_PSN + 5,
                             RAW_PSN + 6, RAW_PSN + 7, RAW_PSN + 8};

    bed_fill(&bed->side[1], 0, 4, 4);
    reads_answered(bed, 4);
    /* The READs are a repetition of the first one and 4 new ones. */
    reads_arrive_blocked(bed, psns, 5);
    assert_int_equal(bed_state(&bed->side[1], 0), RNIC_QPS_RTS);
    bed_reload(&bed->side[1]); /* the count is saved */
    unblock_port(bed, UINT32_MAX);
    for (uint32_t i = 0; i < 8; i++) {
        expect_read(bed, RAW_PSN + i, 0, 1, 4);
    }
    raw_expect_silence(bed);
    /* A fifth new READ exceeds the limit. */
    reads_arrive_blocked(bed,
                         (const uint32_t[]){RAW_PSN, RAW_PSN + 8, RAW_PSN + 9,
                                            RAW_PSN + 10, RAW_PSN + 11,
                                            RAW_PSN + 12},
                         6);
    expect_error(bed, RNIC_WC_REMOTE_INVALID);
}

/* The port takes a part of a burst: only that part counts as answered. */
static void test_a_read_whose_response_the_port_refused_still_counts(
    void **state)
{
    struct bed *bed = *state;
    const uint32_t psns[] = {RAW_PSN, RAW_PSN + 1, RAW_PSN + 2, RAW_PSN + 3};
    const uint32_t more[] = {RAW_PSN + 4, RAW_PSN + 5};

    bed_fill(&bed->side[1], 0, 4, 4);
    reads_arrive_blocked(bed, psns, 4);
    unblock_port(bed, 1);
    expect_read(bed, RAW_PSN, 0, 1, 4);
    reads_arrive_blocked(bed, more, 1);
    assert_int_equal(bed_state(&bed->side[1], 0), RNIC_QPS_RTS);
    reads_arrive_blocked(bed, more + 1, 1);
    expect_error(bed, RNIC_WC_REMOTE_INVALID);
}

/* All 16 entries are in use, and the oldest READ is being repeated. */
WITH_FIXTURE(NULL, NULL)
static void test_a_new_read_ends_the_repetition_of_the_oldest(void **state)
{
    struct bed *bed =
        raw_bed(&(struct bed_path){.reads = ROCE_MAX_DEST_RD_ATOMIC});
    const uint32_t psns[] = {RAW_PSN, RAW_PSN + ROCE_MAX_DEST_RD_ATOMIC};

    (void)state;
    bed_fill(&bed->side[1], 0, 4, 4);
    reads_answered(bed, ROCE_MAX_DEST_RD_ATOMIC);
    reads_arrive_blocked(bed, psns, 2);
    assert_int_equal(bed_state(&bed->side[1], 0), RNIC_QPS_RTS);
    bed_reload(&bed->side[1]);
    unblock_port(bed, UINT32_MAX);
    for (uint32_t i = 1; i <= ROCE_MAX_DEST_RD_ATOMIC; i++) {
        expect_read(bed, RAW_PSN + i, 0, 1, 4);
    }
    raw_expect_silence(bed);
    bed_free(bed);
}

static void test_acknowledgements_are_coalesced(void **state)
{
    struct bed *bed = *state;
    struct frame_rx rx[20];
    uint8_t frame[20][256];

    for (uint32_t i = 0; i < 20; i++) {
        rx[i] = (struct frame_rx){
            .data = frame[i],
            .len_bytes = raw_build(bed,
                                   &(struct raw){.opcode = RC_WRITE_ONLY,
                                                 .psn = RAW_PSN + i,
                                                 .ack_requested = true},
                                   frame[i])};
    }
    rnic_rx(bed->side[1].rnic, 0, rx, 20);
    raw_expect(bed, AETH_ACK, AETH_CREDIT_UNLIMITED, RAW_PSN + 19);
}

/* ---- Fault rules. */

/* Answers the first message with `syndrome`, and lets the others pass. */
struct fault_once {
    uint8_t syndrome;
    uint8_t opcode; /* of the first packet of that message */
    uint32_t asked;
};

static bool judge_no_transfer(void *ctx, uint32_t qpn, bool is_to_dram)
{
    (void)ctx;
    (void)qpn;
    (void)is_to_dram;
    return false;
}

static uint8_t judge_once(void *ctx, uint32_t qpn, uint8_t opcode)
{
    struct fault_once *fault = ctx;

    (void)qpn;
    if (fault->asked++ != 0) {
        return 0;
    }
    fault->opcode = opcode;
    return fault->syndrome;
}

static void test_a_fault_rule_makes_the_peer_send_a_message_again(void **state)
{
    struct bed *bed = *state;
    struct fault_once fault = {.syndrome = AETH_RNR_NAK << 5 | 14};
    const struct roce_fault_hook hook = {
        .ctx = &fault,
        .judge = judge_once,
        .judge_transfer = judge_no_transfer,
    };
    struct raw send = {.opcode = RC_SEND_FIRST, .psn = RAW_PSN, .len = MTU};
    struct bed_wc wc;

    recv_buffers(bed);
    bed->side[1].rnic->roce.faults = &hook;
    raw_send(bed, &send);
    raw_expect(bed, AETH_RNR_NAK, 14, RAW_PSN);
    assert_int_equal(fault.opcode, RC_SEND_FIRST);
    raw_send(bed, &send);
    send = (struct raw){.opcode = RC_SEND_LAST,
                        .psn = RAW_PSN + 1,
                        .len = 20,
                        .ack_requested = true};
    raw_send(bed, &send);
    raw_expect(bed, AETH_ACK, AETH_CREDIT_UNLIMITED, RAW_PSN + 1);
    assert_true(bed_poll(&bed->side[1], &wc));
    /* A message is judged once, with its first packet. */
    assert_int_equal(fault.asked, 2);
}

static void test_a_fault_rule_with_a_sequence_error_loses_nothing(void **state)
{
    struct bed *bed = *state;
    struct fault_once fault = {.syndrome =
                                   AETH_NAK << 5 | AETH_NAK_PSN_SEQUENCE};
    const struct roce_fault_hook hook = {
        .ctx = &fault,
        .judge = judge_once,
        .judge_transfer = judge_no_transfer,
    };
    struct raw write = {
        .opcode = RC_WRITE_ONLY, .psn = RAW_PSN, .ack_requested = true};

    bed->side[1].rnic->roce.faults = &hook;
    raw_send(bed, &write);
    raw_expect(bed, AETH_NAK, AETH_NAK_PSN_SEQUENCE, RAW_PSN);
    raw_send(bed, &write);
    raw_expect(bed, AETH_ACK, AETH_CREDIT_UNLIMITED, RAW_PSN);
}

static void test_a_fault_rule_with_a_fatal_nak_ends_the_connection(void **state)
{
    struct bed *bed = *state;
    struct fault_once fault = {.syndrome =
                                   AETH_NAK << 5 | AETH_NAK_REMOTE_ACCESS};
    const struct roce_fault_hook hook = {
        .ctx = &fault,
        .judge = judge_once,
        .judge_transfer = judge_no_transfer,
    };
    struct raw write = {.opcode = RC_WRITE_ONLY, .psn = RAW_PSN};

    bed->side[1].rnic->roce.faults = &hook;
    raw_send(bed, &write);
    raw_expect(bed, AETH_NAK, AETH_NAK_REMOTE_ACCESS, RAW_PSN);
    raw_send(bed, &write);
    raw_expect_silence(bed);
}

static bool judge_as_error(void *ctx, uint32_t qpn, bool is_to_dram)
{
    (void)ctx;
    (void)qpn;
    return is_to_dram;
}

static void test_a_parity_error_is_counted_and_raises_an_event(void **state)
{
    struct bed *bed = *state;
    struct fault_once no_fault = {0};
    const struct roce_fault_hook hook = {
        .ctx = &no_fault,
        .judge = judge_once,
        .judge_transfer = judge_as_error,
    };
    struct raw write = {.opcode = RC_WRITE_ONLY,
                        .psn = RAW_PSN,
                        .len = 8,
                        .reth = whole_reth(8)};
    struct bed_event event;

    bed->side[1].rnic->roce.faults = &hook;
    raw_send(bed, &write);
    raw_expect(bed, AETH_NAK, AETH_NAK_REMOTE_ACCESS, RAW_PSN);
    assert_int_equal(bed_counter(&bed->side[1], RNIC_COUNT_PARITY_ERRORS), 1);
    assert_true(bed_poll_event(&bed->side[1], &event));
    assert_int_equal(event.type, RNIC_EVENT_PARITY_ERROR);
    assert_int_equal(event.info, RNIC_TRANSFER_TO_DRAM);
    expect_error(bed, RNIC_WC_REMOTE_ACCESS);
}

static void test_the_first_packet_in_rtr_raises_one_event(void **state)
{
    struct bed *bed = bed_new();
    struct bed_event event;

    (void)state;
    bed_start(bed);
    bed_create_qp(&bed->side[1], 0);
    assert_int_equal(bed_modify(&bed->side[1], 0, RNIC_QPS_INIT,
                                &(struct bed_path){.mtu = 1}),
                     RNIC_CMD_OK);
    assert_int_equal(bed_modify(&bed->side[1], 0, RNIC_QPS_RTR,
                                &(struct bed_path){.mtu = 1}),
                     RNIC_CMD_OK);
    for (uint32_t i = 0; i < 2; i++) {
        raw_send(bed, &(struct raw){.opcode = RC_WRITE_ONLY,
                                    .psn = RAW_PSN + i,
                                    .ack_requested = true});
        raw_expect(bed, AETH_ACK, AETH_CREDIT_UNLIMITED, RAW_PSN + i);
    }
    assert_true(bed_poll_event(&bed->side[1], &event));
    assert_int_equal(event.type, RNIC_EVENT_QP_ESTABLISHED);
    assert_false(bed_poll_event(&bed->side[1], &event));
    bed_free(bed);
}

TEST_FIXTURE(setup, teardown)
