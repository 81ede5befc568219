/* SPDX-License-Identifier: BSD-2-Clause */
/* Headers are checked in order, and each invalid packet moves one counter. */
#include <stdarg.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "tests/test_fixture.h"
#include "raw.h"

static int setup(void **state)
{
    struct bed *bed = raw_bed(&(struct bed_path){0});

    bed_create_ud(&bed->side[1]);
    *state = bed;
    return 0;
}

static int teardown(void **state)
{
    bed_free(*state);
    return 0;
}

static const struct raw good = {
    .opcode = RC_WRITE_ONLY, .psn = RAW_PSN, .ack_requested = true};

/* Expect that only this counter and RX_PACKETS have moved. */
static void expect_only(struct bed *bed, enum rnic_counter counter)
{
    for (unsigned int i = RNIC_COUNT_RX_BAD_ICRC; i <= RNIC_COUNT_RX_DROPPED;
         i++) {
        assert_int_equal(bed_counter(&bed->side[1], (enum rnic_counter)i),
                         i == counter);
    }
    raw_expect_silence(bed);
}

static void test_each_invalid_packet_moves_its_counter(void **state)
{
    static const struct {
        struct raw raw;
        uint8_t counter;
    } rows[] = {
        {{.bad_icrc = true}, RNIC_COUNT_RX_BAD_ICRC},
        {{.qpn = 0x3fffff}, RNIC_COUNT_RX_NO_QP},
        {{.qpn = 0xfc1006}, RNIC_COUNT_RX_NO_QP}, /* valid slot, other QPN */
        {{.qpn = 1026}, RNIC_COUNT_RX_NO_QP},     /* beyond the last slot */
        {{.qpn = 2047}, RNIC_COUNT_RX_NO_QP},
        {{.qpn = 0x400 | 0x2006}, RNIC_COUNT_RX_NO_QP},
        {{.qpn = 0xffffff}, RNIC_COUNT_RX_NO_QP},
        {{.opcode = UD_SEND_ONLY, .qpn = 0xffffff}, RNIC_COUNT_RX_NO_QP},
        {{.opcode = UD_SEND_ONLY}, RNIC_COUNT_RX_MALFORMED},
        {{.opcode = UC_SEND_ONLY}, RNIC_COUNT_RX_MALFORMED},
        {{.opcode = 0x15}, RNIC_COUNT_RX_MALFORMED},
        {{.qpn = 1}, RNIC_COUNT_RX_MALFORMED},
        {{.more_pad = 1},
         RNIC_COUNT_RX_MALFORMED}, /* padding without payload */
        {{.pkey = 0x1234}, RNIC_COUNT_RX_KEY},
        {{.opcode = UD_SEND_ONLY, .qpn = 1}, RNIC_COUNT_RX_KEY},
        {{.bad_src = 7}, RNIC_COUNT_RX_ADDRESS},
        {{.bad_dst = 8}, RNIC_COUNT_RX_ADDRESS},
        {{.port = 1}, RNIC_COUNT_RX_ADDRESS}, /* the other port's addresses */
        {{.bad_icrc = true, .qpn = 5, .pkey = 1}, RNIC_COUNT_RX_BAD_ICRC},
        {{.qpn = 5, .pkey = 1, .bad_src = 1}, RNIC_COUNT_RX_NO_QP},
        {{.pkey = 1, .bad_src = 1}, RNIC_COUNT_RX_KEY},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct bed *bed = raw_bed(&(struct bed_path){0});
        struct raw raw = rows[i].raw;

        bed_create_ud(&bed->side[1]);
        raw.opcode = raw.opcode != 0 ? raw.opcode : RC_WRITE_ONLY;
        raw.psn = RAW_PSN;
        raw_send(bed, &raw);
        expect_only(bed, (enum rnic_counter)rows[i].counter);
        assert_int_equal(bed_counter(&bed->side[1], RNIC_COUNT_RX_PACKETS), 1);
        bed_free(bed);
    }
}

/* A queue pair of another engine has a number of the same space. */
static void test_no_packet_reaches_a_pair_of_another_engine(void **state)
{
    struct bed *bed = *state;
    struct rdma_objects *objects = &bed->side[1].rnic->state.objects;
    struct raw raw = good;

    objects->qps[rdma_qp_slot(bed_qpn(&bed->side[1], 0))].type = VERBS_QP_IW;
    raw_send(bed, &raw);
    expect_only(bed, RNIC_COUNT_RX_NO_QP);
}

static void test_every_truncation_is_refused(void **state)
{
    struct bed *bed = *state;
    uint8_t frame[512];
    struct raw raw = good;
    uint32_t len;

    raw.len = 40;
    raw.reth = (struct reth){BED_DATA_ADDR, BED_REMOTE_KEY, 40};
    len = raw_build(bed, &raw, frame);
    for (uint32_t n = 0; n < len; n++) {
        raw_give(bed, 0, frame, n);
    }
    raw_expect_silence(bed);
    assert_int_equal(bed_counter(&bed->side[1], RNIC_COUNT_RX_MALFORMED), len);
}

static void test_every_changed_byte_is_detected_or_harmless(void **state)
{
    struct bed *bed = *state;
    uint8_t frame[512];
    struct raw raw = good;
    uint32_t len;
    struct raw_reply reply;

    raw.len = 8;
    raw.reth = (struct reth){BED_DATA_ADDR, BED_REMOTE_KEY, 8};
    raw.fill = 0x77;
    len = raw_build(bed, &raw, frame);
    for (uint32_t at = 0; at < len; at++) {
        for (unsigned int bit = 0; bit < 8; bit++) {
            frame[at] ^= (uint8_t)(1u << bit);
            raw_give(bed, 0, frame, len);
            frame[at] ^= (uint8_t)(1u << bit);
        }
    }
    /* Changes that the ICRC does not cover give a valid packet or a
     * duplicate of it. */
    while (raw_take(bed, &reply)) {
        assert_int_equal(reply.aeth.kind, AETH_ACK);
        assert_int_equal(reply.bth.psn, RAW_PSN);
    }
    assert_int_equal(bed_state(&bed->side[1], 0), RNIC_QPS_RTS);
    assert_int_equal(*bed_data(&bed->side[1], 7), 0x77);
    assert_int_equal(*bed_data(&bed->side[1], 8), 0);
}

static void test_random_packets_do_no_harm(void **state)
{
    struct bed *bed = *state;
    uint32_t seed = 12345;
    struct raw_reply reply;

    for (unsigned int i = 0; i < 20000; i++) {
        uint8_t ext[64];
        struct raw raw = {.ext = ext};

        for (size_t n = 0; n < sizeof(ext); n++) {
            seed = seed * 1664525 + 1013904223;
            ext[n] = (uint8_t)(seed >> 24);
        }
        seed = seed * 1664525 + 1013904223;
        raw.opcode = (uint8_t)(seed >> 24) & 0x1f;
        raw.psn = RAW_PSN + (seed >> 8 & 7) - 3;
        raw.len = seed >> 12 & 0x1ff;
        raw.more_pad = seed >> 10 & 1;
        raw.ack_requested = seed & 0x200;
        raw_send(bed, &raw);
        while (raw_take(bed, &reply)) {
        }
        if (bed_state(&bed->side[1], 0) == RNIC_QPS_ERROR) {
            static const struct bed_path path = {.mtu = 1, .psn = RAW_PSN};

            for (uint8_t next = RNIC_QPS_RESET; next <= RNIC_QPS_RTS; next++) {
                assert_int_equal(bed_modify(&bed->side[1], 0, next, &path),
                                 RNIC_CMD_OK);
            }
        }
    }
}

static void test_a_disabled_rnic_ignores_packets(void **state)
{
    struct bed *bed = *state;

    assert_true(rnic_write(bed->side[1].rnic, A_RNIC_CTRL, 0));
    raw_send(bed, &good);
    assert_int_equal(bed_counter(&bed->side[1], RNIC_COUNT_RX_PACKETS), 0);
    raw_expect_silence(bed);
}

static void test_an_address_may_move_to_the_other_port(void **state)
{
    struct bed *bed = *state;
    uint8_t frame[512], args[RNIC_CMD_LEN] = {0};
    uint32_t len = raw_build(bed, &good, frame);
    struct ip_addr ours = ip_addr_from_v4(0x0a000002);

    raw_give(bed, 1, frame, len);
    expect_only(bed, RNIC_COUNT_RX_ADDRESS);
    args[RNIC_LADDR_PORT] = 1;
    memcpy(args + RNIC_LADDR_IP, ours.bytes, 16);
    assert_int_equal(
        bed_command(&bed->side[1], RNIC_CMD_LADDR_SET, 5, args, NULL),
        RNIC_CMD_OK);
    raw_give(bed, 1, frame, len);
    raw_expect(bed, AETH_ACK, AETH_CREDIT_UNLIMITED, RAW_PSN);
}

/* Receive a packet in every state of a QP. */
static void test_a_packet_is_handled_in_every_state(void **state)
{
    static const uint8_t counter[] = {
        [RNIC_QPS_RESET] = RNIC_COUNT_RX_NO_QP,
        [RNIC_QPS_INIT] = RNIC_COUNT_RX_NO_QP,
        [RNIC_QPS_ERROR] = RNIC_COUNT_RX_DROPPED,
    };

    (void)state;
    for (uint8_t s = RNIC_QPS_RESET; s < RNIC_QP_STATES; s++) {
        struct bed *bed = bed_new();

        bed_start(bed);
        bed_create_qp(&bed->side[1], 0);
        for (uint8_t next = RNIC_QPS_INIT; next <= s; next++) {
            assert_int_equal(bed_modify(&bed->side[1], 0, next,
                                        &(struct bed_path){.mtu = 1}),
                             RNIC_CMD_OK);
        }
        raw_send(bed, &good);
        if (counter[s] != 0) {
            expect_only(bed, (enum rnic_counter)counter[s]);
        } else {
            raw_expect(bed, AETH_ACK, AETH_CREDIT_UNLIMITED, RAW_PSN);
        }
        bed_free(bed);
    }
}

/* A connection belongs to one VLAN, that of our address. */
static void test_an_address_belongs_to_one_vlan(void **state)
{
    static const struct {
        bool has_vlan, is_tagged; /* of our address; of the packet */
        uint16_t vlan;
        bool fits;
    } rows[] = {
        {false, false, 0, true}, {false, true, 0, true}, /* priority tag */
        {false, true, 7, false}, {true, false, 0, false},
        {true, true, 0, false},  {true, true, 7, true},
        {true, true, 8, false},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct bed *bed = bed_new();
        struct raw raw = good;

        bed->vlan = rows[i].has_vlan;
        bed_start(bed);
        bed_connect(bed, 0, &(struct bed_path){.mtu = 1, .psn = RAW_PSN});
        raw.is_tagged = rows[i].is_tagged;
        raw.vlan = rows[i].vlan;
        raw_send(bed, &raw);
        assert_int_equal(bed_counter(&bed->side[1], RNIC_COUNT_RX_ADDRESS),
                         !rows[i].fits);
        assert_int_equal(bed->side[0].in_tail - bed->side[0].in_head,
                         rows[i].fits);
        bed_free(bed);
    }
}

/* A QP takes packets of its own version only. */
static void test_v1_and_v2_do_not_mix(void **state)
{
    (void)state;
    for (unsigned int v1 = 0; v1 < 2; v1++) {
        struct bed *bed = bed_new();
        struct bed_wc wc;

        bed->v1 = v1;
        bed_start(bed);
        bed_connect(bed, 0, &(struct bed_path){.retries = 1});
        bed->side[1]
            .rnic->state.roce.qps[bed_qpn(&bed->side[1], 0) & 0x7ff]
            .path.is_v1 = !v1;
        bed_send(&bed->side[0], 0,
                 &(struct bed_wr){.opcode = RNIC_WR_WRITE, .len = 4});
        bed_settle(bed);
        assert_true(bed_poll(&bed->side[0], &wc));
        assert_int_equal(wc.status, RNIC_WC_RETRY_EXCEEDED);
        assert_int_equal(bed_counter(&bed->side[1], RNIC_COUNT_RX_ADDRESS), 2);
        bed_free(bed);
    }
}

/*
 * The format: an Ethernet header, the GRH, and the BTH at byte 54; the GIDs of
 * IPv4 addresses are IPv4-mapped (Linux: rdma_ip2gid()).
 */
static void check_v1_frame(void *ctx, unsigned int from,
                           const struct frame_tx *tx)
{
    static const uint8_t grh[] = {
        0x60, 0, 0, 0, 0,    32,   0x1b, 64,   0,  0, 0, 0, 0, 0,
        0,    0, 0, 0, 0xff, 0xff, 10,   0,    0,  1, 0, 0, 0, 0,
        0,    0, 0, 0, 0,    0,    0xff, 0xff, 10, 0, 0, 2};

    if (from == 0) {
        assert_int_equal(tx->head_len, 14 + 40 + BTH_LEN + RETH_LEN);
        assert_int_equal(tx->head[12] << 8 | tx->head[13], 0x8915);
        assert_int_equal(tx->head[14 + 5], 12 + 16 + 8 + 4);
        assert_memory_equal(tx->head + 14, grh, 5);
        assert_memory_equal(tx->head + 14 + 6, grh + 6, sizeof(grh) - 6);
        assert_int_equal(tx->head[54], RC_WRITE_ONLY);
        ++*(unsigned int *)ctx;
    }
}

static void test_a_v1_frame_has_a_grh(void **state)
{
    struct bed *bed = bed_new();
    unsigned int frames = 0;

    (void)state;
    bed->v1 = true;
    bed->tap = check_v1_frame;
    bed->tap_ctx = &frames;
    bed_start(bed);
    bed_connect(bed, 0, &(struct bed_path){0});
    bed_fill(&bed->side[0], 0, 8, 1);
    bed_send(&bed->side[0], 0,
             &(struct bed_wr){.opcode = RNIC_WR_WRITE, .len = 8});
    bed_settle(bed);
    assert_int_equal(frames, 1);
    assert_true(bed_same(bed, 0, 0, 8));
    bed_free(bed);
}

/* The receiver of a datagram learns its RoCE version. */
static void test_v1_datagrams_are_sent_and_received(void **state)
{
    (void)state;
    for (unsigned int v1 = 0; v1 < 2; v1++) {
        struct bed *bed = bed_new();
        struct bed_wc wc;

        bed->v1 = v1;
        bed_start(bed);
        bed_create_ud(&bed->side[0]);
        bed_create_ud(&bed->side[1]);
        bed_recv(&bed->side[1], BED_UD, 7, 0, 1000);
        bed_fill(&bed->side[0], 0, 256, 3);
        bed_send(&bed->side[0], BED_UD,
                 &(struct bed_wr){.opcode = RNIC_WR_SEND, .len = 256});
        bed_settle(bed);
        assert_true(bed_poll(&bed->side[1], &wc));
        assert_int_equal(wc.len, 64 + 256);
        assert_true(bed_same(bed, 0, 64, 256));
        assert_int_equal(*bed_data(&bed->side[1], RNIC_UD_ROCE), v1);
        bed_free(bed);
    }
}

static void test_every_truncated_v1_frame_is_refused(void **state)
{
    /* The frame of test_a_v1_frame_has_a_grh(), truncated: only lengths
     * matter. */
    struct bed *bed = *state;
    uint8_t frame[14 + 40 + 16] = {[12] = 0x89, 0x15, 0x60, [18] = 0, 16, 0x1b};

    for (uint32_t len = 0; len <= sizeof(frame); len++) {
        raw_give(bed, 0, frame, len);
    }
    frame[19] = 15; /* less than a BTH and an ICRC */
    raw_give(bed, 0, frame, sizeof(frame));
    frame[19] = 17; /* longer than the frame */
    raw_give(bed, 0, frame, sizeof(frame));
    frame[19] = 16;
    frame[20] = 17; /* no BTH follows */
    raw_give(bed, 0, frame, sizeof(frame));
    assert_int_equal(bed_counter(&bed->side[1], RNIC_COUNT_RX_MALFORMED),
                     sizeof(frame) + 3);
    assert_int_equal(bed_counter(&bed->side[1], RNIC_COUNT_RX_BAD_ICRC), 1);
}

TEST_FIXTURE(setup, teardown)
