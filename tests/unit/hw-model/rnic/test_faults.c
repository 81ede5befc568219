/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One mixed session, run once for every frame k, with frame k lost, repeated,
 * swapped or corrupted.  The data and every completion must be the same each
 * time.
 */
#include <stdarg.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "bed.h"

enum { LEN = 5000, RECVS = 24, STEP = 16384, ROUNDS = 3 };

struct session {
    bool ipv6, vlan, v1;
    uint8_t mtu;
    unsigned int batch;
    unsigned int room;
    bool reload;
};

/*
 * The offset of a buffer of round r.  Each side has its own, so that they do
 * not overlap.
 */
static uint32_t offset_of(unsigned int side, unsigned int r, unsigned int what)
{
    return ((side * ROUNDS + r) * 4 + what) * STEP;
}

/* Each side writes to, reads from and sends to the other. */
static void post_round(struct bed_side *side, unsigned int r)
{
    uint64_t wr_id = r * 10;

    bed_post(side, 0,
             &(struct bed_wr){.opcode = RNIC_WR_WRITE,
                              .wr_id = wr_id,
                              .offset = offset_of(side->id, r, 0),
                              .remote = offset_of(side->id, r, 0),
                              .len = LEN + r,
                              .sges = 2});
    bed_post(side, 0,
             &(struct bed_wr){.opcode = RNIC_WR_SEND,
                              .flags = RNIC_WR_LINKED | RNIC_WR_SIGNALED |
                                       RNIC_WR_INLINE,
                              .wr_id = wr_id + 1,
                              .inline_data = (const uint8_t *)"0123456789abcde",
                              .len = 15});
    bed_post(side, 0,
             &(struct bed_wr){.opcode = RNIC_WR_READ,
                              .flags = RNIC_WR_SIGNALED,
                              .wr_id = wr_id + 2,
                              .offset = offset_of(side->id, r, 1),
                              .remote = offset_of(side->id, r, 1),
                              .len = LEN - r,
                              .sges = 3});
    bed_post(side, 0,
             &(struct bed_wr){.opcode = RNIC_WR_SEND,
                              .flags = RNIC_WR_SIGNALED | RNIC_WR_FENCE,
                              .wr_id = wr_id + 3,
                              .offset = offset_of(side->id, r, 2),
                              .len = 3 * 1024});
    bed_post(side, 0,
             &(struct bed_wr){.opcode = RNIC_WR_READ,
                              .wr_id = wr_id + 4,
                              .remote = offset_of(side->id, r, 1)});
    bed_send(side, 0,
             &(struct bed_wr){.opcode = RNIC_WR_WRITE,
                              .flags = RNIC_WR_SIGNALED,
                              .wr_id = wr_id + 5,
                              .offset = offset_of(side->id, r, 3),
                              .remote = offset_of(side->id, r, 3),
                              .len = 1});
}

static void fill_sources(struct bed *bed)
{
    for (unsigned int side = 0; side < 2; side++) {
        for (unsigned int r = 0; r < ROUNDS; r++) {
            uint32_t seed = side * 100 + r;

            bed_fill(&bed->side[side], offset_of(side, r, 0), LEN + r, seed);
            bed_fill(&bed->side[!side], offset_of(side, r, 1), LEN - r,
                     seed + 50);
            bed_fill(&bed->side[side], offset_of(side, r, 2), 3 * 1024,
                     seed + 60);
            bed_fill(&bed->side[side], offset_of(side, r, 3), 1, seed + 70);
        }
    }
}

static void check_completions(struct bed_side *side)
{
    static const uint8_t sends[] = {1, 2, 3, 5};
    unsigned int sent = 0, received = 0;
    struct bed_wc wc;

    while (bed_poll(side, &wc)) {
        assert_int_equal(wc.status, RNIC_WC_SUCCESS);
        if (wc.opcode == RNIC_WR_RECV) {
            assert_int_equal(wc.wr_id, received);
            assert_int_equal(wc.len, received % 2 == 0 ? 15 : 3 * 1024);
            received++;
        } else {
            assert_int_equal(wc.wr_id, sent / 4 * 10 + sends[sent % 4]);
            sent++;
        }
    }
    assert_int_equal(sent, 4 * ROUNDS);
    assert_int_equal(received, 2 * ROUNDS);
}

static uint32_t recv_place(unsigned int i)
{
    return (1 << 20) + i * 4096;
}

static void check_data(struct bed *bed)
{
    for (unsigned int side = 0; side < 2; side++) {
        for (unsigned int r = 0; r < ROUNDS; r++) {
            uint32_t at = offset_of(side, r, 0);
            const uint8_t *inline_recv =
                bed_data(&bed->side[!side], recv_place(2 * r));
            const uint8_t *recv =
                bed_data(&bed->side[!side], recv_place(2 * r + 1));

            assert_true(bed_same(bed, at, at, LEN + r));
            assert_true(bed_same(bed, at + STEP, at + STEP, LEN - r));
            assert_true(bed_same(bed, at + 3 * STEP, at + 3 * STEP, 1));
            assert_memory_equal(inline_recv, "0123456789abcde", 15);
            assert_memory_equal(recv, bed_data(&bed->side[side], at + 2 * STEP),
                                3 * 1024);
        }
    }
}

static unsigned int run_session(const struct session *session,
                                enum bed_fault fault, unsigned int at,
                                unsigned int count, unsigned int loss)
{
    struct bed *bed = bed_new();
    unsigned int frames;

    bed->ipv6 = session->ipv6;
    bed->vlan = session->vlan;
    bed->v1 = session->v1;
    bed->batch = session->batch;
    bed_start(bed);
    bed_connect(bed, 0,
                &(struct bed_path){.mtu = session->mtu, .psn = 0xfffff8});
    fill_sources(bed);
    bed->fault = fault;
    bed->fault_at = at;
    bed->fault_count = count;
    bed->room = session->room;
    bed->reload = session->reload;
    bed->loss_per_1000 = loss;
    bed->random = at + 1;
    for (unsigned int i = 0; i < RECVS; i++) {
        bed_recv(&bed->side[0], 0, i, recv_place(i), 4096);
        bed_recv(&bed->side[1], 0, i, recv_place(i), 4096);
    }
    for (unsigned int r = 0; r < ROUNDS; r++) {
        post_round(&bed->side[0], r);
        post_round(&bed->side[1], r);
        if (r == 1) {
            bed_settle(bed);
        }
    }
    bed_settle(bed);
    check_completions(&bed->side[0]);
    check_completions(&bed->side[1]);
    check_data(bed);
    frames = bed->frames;
    bed_free(bed);
    return frames;
}

static void sweep_fault(const struct session *session, enum bed_fault fault,
                        unsigned int count)
{
    unsigned int frames = run_session(session, BED_NONE, 0, 0, 0);

    assert_true(frames > 60);
    for (unsigned int k = 0; k < frames; k++) {
        (void)run_session(session, fault, k, count, 0);
    }
}

static const struct session plain = {.mtu = 3, .batch = 8};
static const struct session single = {.mtu = 3, .batch = 1};
static const struct session tagged_v6 = {
    .mtu = 2, .batch = 64, .ipv6 = true, .vlan = true};
static const struct session v1 = {.mtu = 3, .batch = 8, .v1 = true};
static const struct session tagged_v1 = {
    .mtu = 2, .batch = 8, .ipv6 = true, .vlan = true, .v1 = true};

static void test_every_frame_may_be_lost(void **state)
{
    (void)state;
    sweep_fault(&plain, BED_DROP, 1);
    sweep_fault(&single, BED_DROP, 1);
    sweep_fault(&tagged_v6, BED_DROP, 1);
    sweep_fault(&v1, BED_DROP, 1);
}

static void test_any_five_frames_in_a_row_may_be_lost(void **state)
{
    (void)state;
    sweep_fault(&plain, BED_DROP, 5);
}

static void test_every_frame_may_be_repeated(void **state)
{
    (void)state;
    sweep_fault(&plain, BED_REPEAT, 1);
    sweep_fault(&single, BED_REPEAT, 7);
}

static void test_every_frame_may_overtake(void **state)
{
    (void)state;
    sweep_fault(&plain, BED_SWAP, 1);
    sweep_fault(&single, BED_SWAP, 3);
}

static void test_every_frame_may_be_corrupted(void **state)
{
    (void)state;
    sweep_fault(&plain, BED_SPOIL, 2);
    sweep_fault(&tagged_v1, BED_SPOIL, 2);
}

static void test_one_frame_in_twenty_is_lost(void **state)
{
    (void)state;
    for (unsigned int seed = 0; seed < 50; seed++) {
        (void)run_session(&plain, BED_NONE, seed, 0, 50);
    }
}

static void test_a_port_may_take_any_number_of_frames(void **state)
{
    (void)state;
    for (unsigned int room = 1; room < 40; room++) {
        struct session session = {.mtu = 3, .batch = room, .room = room};

        (void)run_session(&session, BED_NONE, 0, 0, 0);
        (void)run_session(&session, BED_DROP, 2 * room, 1, 0);
    }
}

static void test_state_may_be_saved_and_loaded_at_every_step(void **state)
{
    const struct session session = {.mtu = 3, .batch = 1, .reload = true};
    const struct session slow = {
        .mtu = 3, .batch = 2, .room = 3, .reload = true};

    (void)state;
    (void)run_session(&session, BED_NONE, 0, 0, 0);
    (void)run_session(&session, BED_DROP, 17, 1, 0);
    (void)run_session(&slow, BED_DROP, 31, 2, 0);
}
