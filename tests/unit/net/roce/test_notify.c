/* SPDX-License-Identifier: BSD-2-Clause */
/* Marked packets are answered with CNPs, and CNPs slow down a queue pair. */
#include <stdarg.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "tests/test_fixture.h"
#include "raw.h"

enum { MTU = 256, CE = 3, ALL = 3 | 2 << 4 | 48 << 8 | 6 << 16 };

static int setup(void **state)
{
    struct bed *bed = raw_bed(&(struct bed_path){0});

    bed_create_ud(&bed->side[1]);
    assert_true(rnic_write(bed->side[1].rnic, A_RNIC_ECN, ALL));
    /* No peer acknowledges packets here, so turn the time-out off. */
    bed->side[1].rnic->state.roce.qps[BED_SLOT + 1].path.ack_timeout = 0;
    *state = bed;
    return 0;
}

static int teardown(void **state)
{
    bed_free(*state);
    return 0;
}

static uint64_t read_counter(struct bed *bed, enum rnic_counter counter)
{
    return bed_counter(&bed->side[1], counter);
}

/* A WRITE of 8 bytes, which is packet `n` of the connection. */
static struct raw write_of(uint32_t n, uint8_t tos)
{
    return (struct raw){.opcode = RC_WRITE_ONLY,
                        .psn = RAW_PSN + n,
                        .reth = {BED_DATA_ADDR, BED_REMOTE_KEY, 8},
                        .len = 8,
                        .tos = tos};
}

static void send_raw(struct bed *bed, struct raw raw)
{
    raw_send(bed, &raw);
}

static void expect_cnp(struct bed *bed)
{
    struct raw_reply reply;

    assert_true(raw_take(bed, &reply));
    assert_int_equal(reply.bth.opcode, CNP_NOTIFY);
    assert_int_equal(reply.bth.dest_qp, bed_qpn(&bed->side[0], 0));
    raw_expect_silence(bed);
}

static void send_cnp(struct bed *bed)
{
    send_raw(bed, (struct raw){.opcode = CNP_NOTIFY, .len = 16});
}

static void run_deferred(struct bed_side *side)
{
    while (side->deferred) {
        side->deferred = false;
        rnic_run(side->rnic);
    }
}

static unsigned int take_all(struct bed *bed)
{
    struct raw_reply reply;
    unsigned int n = 0;

    while (raw_take(bed, &reply)) {
        n++;
    }
    return n;
}

/*
 * Except for addresses, port and identification, it has the bytes that a
 * ConnectX-4 Lx sends: scapy's test/contrib/roce.uts, "RoCE CNP captured on
 * ConnectX-4 Lx".
 */
static void test_a_cnp_has_the_bytes_that_other_adapters_send(void **state)
{
    static const uint8_t connectx[] = {
        0x45, 0xc2, 0x00, 0x3c, 0x71, 0x8c, 0x40, 0x00, 0x40, 0x11, 0x91, 0x61,
        0x0a, 0x00, 0x11, 0x01, 0x0a, 0x00, 0x12, 0x01, 0x00, 0x00, 0x12, 0xb7,
        0x00, 0x28, 0x00, 0x00, 0x81, 0x00, 0xff, 0xff, 0x40, 0x00, 0x01, 0x18,
        0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
        0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00};
    struct bed *bed = *state;
    uint32_t qpn = bed_qpn(&bed->side[0], 0);
    const struct bed_frame *frame;
    uint8_t ip[sizeof(connectx)];

    send_raw(bed, write_of(0, CE));
    assert_int_equal(bed->side[0].in_tail - bed->side[0].in_head, 1);
    frame = &bed->side[0].in[bed->side[0].in_head % BED_FRAMES];
    assert_int_equal(frame->len, 14 + sizeof(connectx) + 4);
    memcpy(ip, frame->data + 14, sizeof(ip));
    memcpy(ip + 4, connectx + 4, 2);    /* identification */
    memcpy(ip + 10, connectx + 10, 12); /* checksum, addresses, port */
    assert_int_equal(ip[33] << 16 | ip[34] << 8 | ip[35], qpn);
    memcpy(ip + 33, connectx + 33, 3);
    assert_memory_equal(ip, connectx, sizeof(connectx));
    expect_cnp(bed);
    assert_int_equal(read_counter(bed, RNIC_COUNT_NP_CNP_SENT), 1);
}

static void test_marks_within_50_us_are_answered_with_one_cnp(void **state)
{
    struct bed *bed = *state;
    uint64_t start_ns = bed->now_ns;

    send_raw(bed, write_of(0, CE));
    expect_cnp(bed);
    send_raw(bed, write_of(1, CE));
    bed->now_ns = start_ns + 49999;
    send_raw(bed, write_of(2, CE | 10 << 2));
    raw_expect_silence(bed);
    bed->now_ns = start_ns + 50000;
    send_raw(bed, write_of(3, 0));
    send_raw(bed, write_of(4, 1));
    send_raw(bed, write_of(5, 2));
    raw_expect_silence(bed);
    send_raw(bed, write_of(6, CE));
    expect_cnp(bed);
    assert_int_equal(read_counter(bed, RNIC_COUNT_NP_ECN_MARKED), 4);
    assert_int_equal(read_counter(bed, RNIC_COUNT_NP_CNP_SENT), 2);
}

/* The response to a READ has data; if that is marked, the peer sends CNPs. */
static void test_only_marked_packets_with_data_are_answered(void **state)
{
    struct bed *bed = *state;
    struct raw_reply reply;

    send_raw(bed, (struct raw){.opcode = RC_READ_REQUEST,
                               .psn = RAW_PSN,
                               .reth = {BED_DATA_ADDR, BED_REMOTE_KEY, 8},
                               .tos = CE});
    assert_true(raw_take(bed, &reply));
    assert_int_equal(reply.bth.opcode, RC_READ_RESPONSE_ONLY);
    raw_expect_silence(bed);
    assert_int_equal(read_counter(bed, RNIC_COUNT_NP_ECN_MARKED), 1);
    assert_int_equal(read_counter(bed, RNIC_COUNT_NP_CNP_SENT), 0);
}

static void test_a_mark_out_of_order_is_answered_too(void **state)
{
    struct bed *bed = *state;
    struct raw_reply reply;

    send_raw(bed, write_of(5, CE));
    assert_true(raw_take(bed, &reply));
    assert_int_equal(reply.bth.opcode, CNP_NOTIFY);
    raw_expect(bed, AETH_NAK, AETH_NAK_PSN_SEQUENCE, RAW_PSN);
}

static void test_no_cnp_is_sent_when_they_are_off(void **state)
{
    struct bed *bed = *state;

    assert_true(rnic_write(bed->side[1].rnic, A_RNIC_ECN, ALL & ~1));
    send_raw(bed, write_of(0, CE));
    raw_expect_silence(bed);
    assert_int_equal(read_counter(bed, RNIC_COUNT_NP_ECN_MARKED), 1);
}

static void test_a_cnp_is_sent_once_after_a_full_port(void **state)
{
    struct bed *bed = *state;

    bed->side[1].tx_room = 0;
    send_raw(bed, write_of(0, CE));
    raw_expect_silence(bed);
    assert_int_equal(read_counter(bed, RNIC_COUNT_NP_CNP_SENT), 0);
    bed->side[1].tx_room = UINT32_MAX;
    rnic_port_ready(bed->side[1].rnic, 0);
    run_deferred(&bed->side[1]);
    expect_cnp(bed);
    assert_int_equal(read_counter(bed, RNIC_COUNT_NP_CNP_SENT), 1);
}

/* CNPs have their own priority, so a pause of the data does not stop them. */
static void test_a_paused_queue_pair_still_sends_cnps(void **state)
{
    struct bed *bed = *state;
    uint8_t paused = BIT(0);
    struct raw raw = write_of(0, CE);

    bed->side[1].rnic->roce.sinks[0].paused = &paused;
    raw.ack_requested = true;
    send_raw(bed, raw);
    expect_cnp(bed); /* the acknowledgement waits */
    paused = BIT(6);
    rnic_port_ready(bed->side[1].rnic, 0);
    run_deferred(&bed->side[1]);
    raw_expect(bed, AETH_ACK, AETH_CREDIT_UNLIMITED, RAW_PSN);
    bed->now_ns += 60000;
    send_raw(bed, write_of(1, CE)); /* CNPs are paused: dropped */
    raw_expect_silence(bed);
    paused = 0;
    rnic_port_ready(bed->side[1].rnic, 0);
    run_deferred(&bed->side[1]);
    raw_expect_silence(bed);
    bed->side[1].rnic->roce.sinks[0].paused = NULL;
}

/* ---- Received CNPs. */

static void test_data_is_marked_as_ecn_capable(void **state)
{
    struct bed *bed = *state;
    const struct bed_frame *frame;

    /* A path keeps the code point that was set when it was made. */
    assert_int_equal(
        bed_modify(&bed->side[1], 0, RNIC_QPS_RESET, &(struct bed_path){0}),
        RNIC_CMD_OK);
    for (uint8_t next = RNIC_QPS_INIT; next <= RNIC_QPS_RTS; next++) {
        assert_int_equal(
            bed_modify(&bed->side[1], 0, next, &(struct bed_path){.mtu = 1}),
            RNIC_CMD_OK);
    }
    bed_send(&bed->side[1], 0,
             &(struct bed_wr){.opcode = RNIC_WR_WRITE, .len = 4});
    run_deferred(&bed->side[1]);
    frame = &bed->side[0].in[bed->side[0].in_head % BED_FRAMES];
    assert_int_equal(frame->data[15], 2);
    assert_int_equal(take_all(bed), 1);
}

static void test_a_cnp_slows_down_its_queue_pair(void **state)
{
    struct bed *bed = *state;
    struct bed_side *side = &bed->side[1];
    const uint64_t packet_ns = (14 + 28 + 12 + 256 + 4) * 8 * 100;
    uint64_t start_ns;

    for (unsigned int i = 0; i < 15; i++) { /* lowers the rate to 10 Mb/s */
        send_cnp(bed);
    }
    assert_int_equal(read_counter(bed, RNIC_COUNT_RX_CNP), 15);
    assert_int_equal(read_counter(bed, RNIC_COUNT_RP_CNP_HANDLED), 15);
    start_ns = bed->now_ns;
    bed_send(side, 0,
             &(struct bed_wr){.opcode = RNIC_WR_WRITE, .len = 20 * MTU});
    run_deferred(side);
    assert_int_equal(take_all(bed), 1);
    assert_in_range(side->timer_ns, start_ns + packet_ns,
                    start_ns + packet_ns + 16 * 800);
    for (unsigned int i = 0; i < 5; i++) { /* keep it there */
        bed->now_ns = side->timer_ns - 1;
        rnic_timer(side->rnic);
        raw_expect_silence(bed);
        assert_true(bed_tick(bed));
        send_cnp(bed);
        assert_int_equal(take_all(bed), 1);
    }
    bed_reload(side); /* the limit is saved */
    run_deferred(side);
    raw_expect_silence(bed);
    assert_true(bed_tick(bed));
    assert_int_equal(take_all(bed), 1);
}

/* At the minimum rate, 1000 packets would take 265 ms. */
static void test_a_queue_pair_recovers_without_further_cnps(void **state)
{
    struct bed *bed = *state;
    struct bed_side *side = &bed->side[1];
    uint64_t start_ns = bed->now_ns;
    unsigned int sent = 0;

    for (unsigned int i = 0; i < 15; i++) {
        send_cnp(bed);
    }
    side->rnic->state.roce.window = 2000; /* no peer acknowledges packets */
    bed_send(side, 0,
             &(struct bed_wr){.opcode = RNIC_WR_WRITE, .len = 1000 * MTU});
    run_deferred(side);
    for (sent = take_all(bed); sent < 1000; sent += take_all(bed)) {
        assert_true(bed_tick(bed));
        assert_true(bed->now_ns - start_ns < 10000000);
    }
    assert_true(bed->now_ns - start_ns > 1000000);
    assert_int_equal(read_counter(bed, RNIC_COUNT_RETRANSMITTED), 0);
}

static void test_a_cnp_slows_down_read_responses_too(void **state)
{
    struct bed *bed = *state;

    for (unsigned int i = 0; i < 15; i++) {
        send_cnp(bed);
    }
    send_raw(bed,
             (struct raw){.opcode = RC_READ_REQUEST,
                          .psn = RAW_PSN,
                          .reth = {BED_DATA_ADDR, BED_REMOTE_KEY, 4 * MTU}});
    assert_int_equal(take_all(bed), 1);
    for (unsigned int i = 0; i < 3; i++) {
        assert_true(bed_tick(bed));
        send_cnp(bed);
        assert_int_equal(take_all(bed), 1);
    }
}

/* Packets that the port does not take are not counted. */
static void test_a_full_port_does_not_slow_down_a_queue_pair_further(
    void **state)
{
    struct bed *bed = *state;
    struct bed_side *side = &bed->side[1];
    uint64_t next_ns;

    for (unsigned int i = 0; i < 15; i++) {
        send_cnp(bed);
    }
    next_ns = side->rnic->state.roce.qps[BED_SLOT + 1].dcqcn.next_ns;
    side->tx_room = 0;
    bed_send(side, 0, &(struct bed_wr){.opcode = RNIC_WR_WRITE, .len = MTU});
    run_deferred(side);
    raw_expect_silence(bed);
    assert_int_equal(side->rnic->state.roce.qps[BED_SLOT + 1].dcqcn.next_ns,
                     next_ns);
    side->tx_room = UINT32_MAX;
    rnic_port_ready(side->rnic, 0);
    run_deferred(side);
    assert_int_equal(take_all(bed), 1);
}

static void test_cnps_are_ignored_when_the_reaction_is_off(void **state)
{
    struct bed *bed = *state;
    struct bed_side *side = &bed->side[1];

    assert_true(rnic_write(side->rnic, A_RNIC_ECN, ALL & ~2));
    send_cnp(bed);
    assert_int_equal(read_counter(bed, RNIC_COUNT_RX_CNP), 1);
    assert_int_equal(read_counter(bed, RNIC_COUNT_RP_CNP_HANDLED), 0);
    bed_send(side, 0,
             &(struct bed_wr){.opcode = RNIC_WR_WRITE, .len = 50 * MTU});
    run_deferred(side);
    assert_int_equal(take_all(bed), 50);
}

static void test_only_a_peer_s_cnp_counts(void **state)
{
    static const struct {
        struct raw raw;
        uint8_t counter;
    } rows[] = {
        {{.len = 16, .bad_src = 1}, RNIC_COUNT_RX_ADDRESS},
        {{.len = 16, .bad_dst = 1}, RNIC_COUNT_RX_ADDRESS},
        {{.len = 16, .pkey = 0x1234}, RNIC_COUNT_RX_KEY},
        {{.len = 16, .qpn = 1}, RNIC_COUNT_RX_MALFORMED}, /* datagrams */
        {{.len = 16, .qpn = 1000}, RNIC_COUNT_RX_NO_QP},
        {{.len = 16, .bad_icrc = true}, RNIC_COUNT_RX_BAD_ICRC},
        {{.len = 0}, RNIC_COUNT_RX_MALFORMED},
        {{.len = 12}, RNIC_COUNT_RX_MALFORMED},
        {{.len = 20}, RNIC_COUNT_RX_MALFORMED},
    };
    struct bed *bed = *state;

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct raw raw = rows[i].raw;
        uint64_t before = read_counter(bed, (enum rnic_counter)rows[i].counter);

        raw.opcode = CNP_NOTIFY;
        raw_send(bed, &raw);
        assert_int_equal(read_counter(bed, (enum rnic_counter)rows[i].counter),
                         before + 1);
    }
    assert_int_equal(read_counter(bed, RNIC_COUNT_RX_CNP), 0);
    assert_int_equal(read_counter(bed, RNIC_COUNT_RP_CNP_HANDLED), 0);
}

static void test_registers_ignore_invalid_values(void **state)
{
    struct bed *bed = *state;
    struct rnic *rnic = bed->side[1].rnic;

    assert_int_equal(rnic_read(rnic, A_RNIC_ECN), ALL);
    assert_true(rnic_write(rnic, A_RNIC_ECN, 3 << 4));
    assert_int_equal(rnic_read(rnic, A_RNIC_ECN), ALL);
    assert_true(rnic_write(rnic, A_RNIC_LINE_RATE, 10000));
    assert_true(rnic_write(rnic, A_RNIC_LINE_RATE, 0));
    assert_int_equal(rnic_read(rnic, A_RNIC_LINE_RATE), 10000);
    assert_true(rnic_write(rnic, A_RNIC_CTRL, R_RNIC_CTRL_RESET_MASK));
    assert_int_equal(rnic_read(rnic, A_RNIC_LINE_RATE), 25000);
    assert_int_equal(rnic_read(rnic, A_RNIC_ECN), 48 << 8 | 6 << 16);
}

TEST_FIXTURE(setup, teardown)
