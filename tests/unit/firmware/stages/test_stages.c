/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which hart gets which stage, and when messages are taken.  The test plays the
 * transport, the target and the medium; tests/bench/native_threads.c lets
 * several harts serve a whole drive.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "firmware/drivers/nand.h"
#include "firmware/drivers/rnic.h"
#include "firmware/hal/dram.h"
#include "firmware/medium/nand_medium.h"
#include "firmware/medium/nand_stage.h"
#include "firmware/stages/stages.h"
#include "nvmeof/rdma/rdma_transport.h"
#include "nvmeof/target/plain.h"
#include "storage/volume/volume.h"
#include "tests/test_fixture.h"

enum { HARTS = 3, NOW_US = 77, QPAIR = 5, DRAM_BYTES = 16 << 20 };

static struct {
    struct dram dram;
    struct volume volume;
    struct nand_medium nand;
    struct stages *stages;
    struct nvmf_transfer transfer[4];
    uint8_t sqe[64];
    bool is_plain, medium_is_full, medium_has_work, uses_relay;
    bool transport_has_other;
    unsigned int polls, flushes, kicks, runs, submits;
    /* What the target and the transport have been told, in order. */
    char calls[64];
    const struct media_io *started; /* the last operation */
} world;

static uint8_t memory[DRAM_BYTES];

static void note_call(char call)
{
    size_t len = strlen(world.calls);

    assert_true(len + 1 < sizeof(world.calls));
    world.calls[len] = call;
}

/* ---- The transport. */

void rdma_transport_tick(struct rdma_transport *rdma, uint64_t now_us)
{
    (void)rdma;
    assert_int_equal(now_us, NOW_US);
}

unsigned int verbs_poll_plain(struct verbs *verbs, unsigned int budget,
                              bool *is_other)
{
    (void)verbs;
    (void)budget;
    *is_other = world.transport_has_other;
    return world.polls != 0 ? world.polls-- : 0;
}

void verbs_flush(struct verbs *verbs)
{
    (void)verbs;
    world.flushes++;
}

bool rdma_transport_needs_step(const struct rdma_transport *rdma)
{
    (void)rdma;
    return false;
}

void rdma_transport_use_relay(struct rdma_transport *rdma, bool is_used)
{
    (void)rdma;
    world.uses_relay = is_used;
}

static void fetch_data(void *ctx, struct nvmf_transfer *transfer)
{
    (void)ctx;
    assert_ptr_equal(transfer, &world.transfer[0]);
    note_call('f');
}

static void send_data(void *ctx, struct nvmf_transfer *transfer)
{
    (void)ctx;
    assert_ptr_equal(transfer, &world.transfer[1]);
    note_call('s');
}

static void send_response(void *ctx, struct nvmf_transfer *transfer)
{
    (void)ctx;
    assert_ptr_equal(transfer, &world.transfer[2]);
    note_call('r');
}

static void disconnect_qpair(void *ctx, uint16_t qpair)
{
    (void)ctx;
    assert_int_equal(qpair, QPAIR);
    note_call('x');
}

const struct nvmf_transport *rdma_transport_direct(
    const struct rdma_transport *rdma)
{
    static const struct nvmf_transport direct = {
        .fetch = fetch_data,
        .send = send_data,
        .respond = send_response,
        .disconnect = disconnect_qpair,
    };

    (void)rdma;
    return &direct;
}

/* ---- The target. */

bool nvmf_capsule_is_plain(const struct nvmf_target *target, uint16_t qpair,
                           const uint8_t *sqe)
{
    (void)target;
    assert_int_equal(qpair, QPAIR);
    assert_ptr_equal(sqe, world.sqe);
    return world.is_plain;
}

bool nvmf_transfer_is_plain(const struct nvmf_target *target,
                            const struct nvmf_transfer *transfer)
{
    (void)target;
    (void)transfer;
    return world.is_plain;
}

bool nvmf_media_is_plain(const struct nvmf_target *target,
                         const struct media_owner *owner)
{
    (void)target;
    (void)owner;
    return world.is_plain;
}

void nvmf_use_media(struct nvmf_target *target, const struct nvmf_media *media)
{
    (void)target;
    (void)media;
}

void nvmf_capsule(struct nvmf_target *target, uint16_t qpair,
                  struct nvmf_transfer *transfer, const uint8_t *sqe,
                  const struct nvmf_data *data, uint64_t now_us)
{
    (void)target;
    (void)sqe;
    assert_int_equal(qpair, QPAIR);
    assert_ptr_equal(transfer, &world.transfer[0]);
    assert_int_equal(data->len_bytes, 4096);
    assert_int_equal(now_us, NOW_US);
    note_call('C');
}

void nvmf_request_fetched(struct nvmf_target *target,
                          struct nvmf_transfer *transfer, bool is_ok)
{
    (void)target;
    (void)transfer;
    note_call(is_ok ? 'F' : '!');
}

void nvmf_request_sent(struct nvmf_target *target,
                       struct nvmf_transfer *transfer, bool is_ok)
{
    (void)target;
    (void)transfer;
    note_call(is_ok ? 'S' : '!');
}

void nvmf_request_done(struct nvmf_target *target, struct nvmf_transfer *done)
{
    (void)target;
    (void)done;
    note_call('D');
}

/* ---- The medium. */

bool nand_stage_has_work(const struct nand_medium *medium)
{
    assert_ptr_equal(medium, &world.nand);
    return world.medium_has_work;
}

void nand_stage_run(struct nand_medium *medium, unsigned int budget,
                    uint64_t now_us, uint64_t *deadline_us, bool *is_other)
{
    (void)medium;
    (void)budget;
    (void)now_us;
    (void)deadline_us;
    (void)is_other;
    world.runs++;
}

void nand_kick(struct nand *nand)
{
    (void)nand;
    world.kicks++;
}

bool nand_medium_submit(void *medium, const struct media_io *io)
{
    assert_ptr_equal(medium, &world.nand);
    if (world.medium_is_full) {
        return false;
    }
    world.submits++;
    world.started = io;
    return true;
}

bool nand_medium_wipe(void *medium, struct media_owner *owner)
{
    (void)medium;
    (void)owner;
    return false;
}

/* ---- Beds. */

static void run_turn(void)
{
    assert_true(stages_begin_turn(world.stages));
    stages_end_turn(world.stages);
}

static int new_world(void **state)
{
    const struct stages_parts parts = {.volume = &world.volume,
                                       .nand = &world.nand};

    (void)state;
    memset(&world, 0, sizeof(world));
    world.is_plain = true;
    dram_init(&world.dram, memory, sizeof(memory));
    world.stages = stages_make(&parts, &world.dram);
    assert_non_null(world.stages);
    stages_use_harts(world.stages, HARTS);
    return 0;
}

TEST_FIXTURE(new_world, NULL)

static void put_capsule(void)
{
    const struct nvmf_data data = {.len_bytes = 4096};
    const struct rdma_relay *relay = &world.stages->relay;

    relay->capsule(relay->ctx, QPAIR, &world.transfer[0], world.sqe, &data,
                   NOW_US);
}

/* Let the transport put something while a hart has it. */
static void take_transport(unsigned int hart)
{
    world.polls = 1;
    assert_true(stages_take(world.stages, hart, NOW_US));
    assert_int_equal(world.stages->stage_of[hart], STAGE_TRANSPORT);
}

/* ---- Turns of the main loop. */

static void test_no_stage_is_given_while_a_turn_is_wanted(void **state)
{
    (void)state;
    world.polls = 1;
    assert_true(stages_want_turn(world.stages)); /* the first one */
    assert_false(stages_take(world.stages, 0, NOW_US));
    assert_true(stages_begin_turn(world.stages));
    assert_false(world.uses_relay);
    assert_false(stages_take(world.stages, 1, NOW_US));
    stages_end_turn(world.stages);
    assert_true(world.uses_relay);
    assert_true(stages_take(world.stages, 0, NOW_US));
}

static void test_a_turn_waits_until_every_stage_is_given_back(void **state)
{
    (void)state;
    run_turn();
    take_transport(0);
    assert_false(stages_begin_turn(world.stages));
    /* No hart takes another one meanwhile. */
    world.medium_has_work = true;
    assert_false(stages_take(world.stages, 2, NOW_US));
    stages_give(world.stages, 0);
    assert_true(stages_begin_turn(world.stages));
}

/* ---- Stages. */

static void test_one_hart_at_a_time_has_a_stage(void **state)
{
    (void)state;
    run_turn();
    take_transport(0);
    world.polls = 1;
    world.medium_has_work = true;
    assert_true(stages_take(world.stages, 1, NOW_US));
    assert_int_equal(world.stages->stage_of[1], STAGE_MEDIUM);
    assert_false(stages_take(world.stages, 2, NOW_US));
    stages_give(world.stages, 0);
    assert_int_equal(world.flushes, 2); /* one of the turn */
    assert_true(stages_take(world.stages, 2, NOW_US));
    assert_int_equal(world.stages->stage_of[2], STAGE_TRANSPORT);
    assert_int_equal(world.stages->moves[STAGE_TRANSPORT], 1);
}

static void test_a_stage_without_anything_to_do_is_not_taken(void **state)
{
    (void)state;
    run_turn();
    world.stages->medium_us = UINT64_MAX;
    for (unsigned int hart = 0; hart < HARTS; hart++) {
        assert_false(stages_take(world.stages, hart, NOW_US));
        assert_int_equal(world.stages->stage_of[hart], STAGES);
    }
    assert_int_equal(world.runs, 0);
    assert_true(stages_begin_turn(world.stages));
}

static void test_what_is_not_plain_at_the_transport_asks_for_a_turn(
    void **state)
{
    (void)state;
    run_turn();
    world.transport_has_other = true;
    world.stages->medium_us = UINT64_MAX;
    assert_false(stages_take(world.stages, 0, NOW_US));
    assert_true(stages_want_turn(world.stages));
}

/* ---- Messages. */

static void test_a_capsule_is_seen_when_the_transport_is_given_back(
    void **state)
{
    (void)state;
    run_turn();
    world.stages->medium_us = UINT64_MAX;
    take_transport(0);
    put_capsule();
    assert_false(stages_take(world.stages, 1, NOW_US));
    stages_give(world.stages, 0);
    assert_true(stages_take(world.stages, 1, NOW_US));
    assert_int_equal(world.stages->stage_of[1], STAGE_TARGET);
    assert_string_equal(world.calls, "C");
}

static void test_a_command_that_is_not_plain_waits_for_a_turn(void **state)
{
    (void)state;
    run_turn();
    world.stages->medium_us = UINT64_MAX;
    take_transport(0);
    put_capsule();
    stages_give(world.stages, 0);
    world.is_plain = false;
    assert_true(stages_take(world.stages, 1, NOW_US));
    assert_string_equal(world.calls, "");
    assert_true(stages_want_turn(world.stages));
    stages_give(world.stages, 1);
    run_turn();
    assert_string_equal(world.calls, "C");
}

/* The capsule may use a request that has ended just before. */
static void test_ends_of_requests_come_before_capsules(void **state)
{
    const struct rdma_relay *relay = &world.stages->relay;

    (void)state;
    run_turn();
    world.stages->medium_us = UINT64_MAX;
    take_transport(0);
    put_capsule();
    relay->sent(relay->ctx, &world.transfer[1], true);
    relay->fetched(relay->ctx, &world.transfer[1], false);
    relay->done(relay->ctx, &world.transfer[2]);
    stages_give(world.stages, 0);
    assert_true(stages_take(world.stages, 1, NOW_US));
    assert_string_equal(world.calls, "DS!C");
}

static void test_answers_reach_the_transport_in_their_order(void **state)
{
    const struct rdma_relay *relay = &world.stages->relay;

    (void)state;
    run_turn();
    world.stages->medium_us = UINT64_MAX;
    take_transport(0);
    put_capsule();
    stages_give(world.stages, 0);
    assert_true(stages_take(world.stages, 1, NOW_US));
    relay->fetch(relay->ctx, &world.transfer[0]);
    relay->send(relay->ctx, &world.transfer[1]);
    relay->disconnect(relay->ctx, QPAIR);
    relay->respond(relay->ctx, &world.transfer[2]);
    assert_false(stages_take(world.stages, 0, NOW_US)); /* not shown yet */
    stages_give(world.stages, 1);
    assert_true(stages_take(world.stages, 0, NOW_US));
    assert_string_equal(world.calls, "Crfsx");
}

/* ---- The medium. */

static void note_end(struct media_owner *owner, enum media_status status)
{
    (void)owner;
    note_call(status == MEDIA_OK ? 'k' : 'e');
}

static void test_the_drives_own_operations_go_through_the_medium(void **state)
{
    struct media_owner owner = {.done = note_end};
    const struct media_io io = {.op = MEDIA_FLUSH, .owner = &owner};

    (void)state;
    run_turn();
    assert_true(stages_begin_turn(world.stages));
    assert_true(stages_submit_own(world.stages, &io));
    assert_int_equal(world.submits, 0);
    world.medium_is_full = true;
    stages_end_turn(world.stages);
    assert_int_equal(world.submits, 0);
    world.medium_is_full = false;
    assert_true(stages_take(world.stages, 2, NOW_US));
    assert_int_equal(world.stages->stage_of[2], STAGE_MEDIUM);
    assert_int_equal(world.submits, 1);
    /* It ends as a message, for a turn: only the target's are plain. */
    media_end(world.started->owner, MEDIA_OK);
    stages_give(world.stages, 2);
    assert_int_equal(world.kicks, 3); /* two of them in turns */
    assert_string_equal(world.calls, "");
    assert_true(stages_take(world.stages, 1, NOW_US));
    assert_true(stages_want_turn(world.stages));
    stages_give(world.stages, 1);
    run_turn();
    assert_string_equal(world.calls, "k");
}

static void test_operations_beyond_their_number_are_refused(void **state)
{
    struct media_owner owner = {.done = note_end};
    const struct media_io io = {.op = MEDIA_FLUSH, .owner = &owner};

    (void)state;
    assert_true(stages_begin_turn(world.stages));
    for (unsigned int i = 0; i < STAGE_OPS; i++) {
        assert_true(stages_submit_own(world.stages, &io));
    }
    assert_false(stages_submit_own(world.stages, &io));
    stages_end_turn(world.stages);
    assert_int_equal(world.submits, STAGE_OPS);
    assert_true(stages_begin_turn(world.stages));
    media_end(world.started->owner, MEDIA_OK);
    stages_end_turn(world.stages);
    assert_string_equal(world.calls, "k");
    assert_true(stages_begin_turn(world.stages));
    assert_true(stages_submit_own(world.stages, &io));
    assert_false(stages_submit_own(world.stages, &io));
}

static void test_one_hart_calls_the_medium_without_a_message(void **state)
{
    struct media_owner owner = {.done = note_end};
    const struct media_io io = {.op = MEDIA_FLUSH, .owner = &owner};

    (void)state;
    stages_use_harts(world.stages, 1);
    assert_true(stages_submit_own(world.stages, &io));
    assert_int_equal(world.submits, 1);
    assert_ptr_equal(world.started, &io);
}

/* ---- Rings. */

static void test_lines_of_messages_are_counted_also_when_numbers_wrap(
    void **state)
{
    struct stage_ring ring = {.put = UINT32_MAX - 1,
                              .shown = UINT32_MAX - 1,
                              .taken = UINT32_MAX - 1};

    (void)state;
    ring.put += 4;
    assert_int_equal(stage_ring_count(&ring), 0);
    stage_ring_show(&ring, 16);
    assert_int_equal(stage_ring_count(&ring), 4);
    assert_int_equal(stage_ring_take(&ring, ring.taken, 16), 0);
    /* 4 messages of 16 bytes, of which the first begins at byte 32 of a line.
     */
    assert_int_equal(stage_ring_take(&ring, 2, 16), 2);
    assert_int_equal(stage_ring_count(&ring), 0);
    assert_int_equal(ring.taken, 2);
}
