/* SPDX-License-Identifier: BSD-2-Clause */
#include "firmware/stages/stages.h"

#include "firmware/stages/stages_inside.h"
#include "firmware/drivers/rnic.h"
#include "firmware/hal/dram.h"
#include "firmware/loop/loop.h"
#include "firmware/medium/nand_medium.h"
#include "firmware/medium/nand_stage.h"
#include "nvmeof/rdma/rdma_transport.h"
#include "nvmeof/target/plain.h"
#include "storage/volume/volume.h"

enum { NO_OP = 0xffff, STAGES_ALIGN = 64 };

bool stages_want_turn(const struct stages *stages)
{
    return __atomic_load_n(&stages->wants_turn, __ATOMIC_SEQ_CST);
}

void stages_request_turn(struct stages *stages)
{
    __atomic_store_n(&stages->wants_turn, true, __ATOMIC_SEQ_CST);
}

/* ---- Operations of the medium. */

static void give_op(struct stages *stages, uint16_t op)
{
    stages->owners[op].next_free = stages->free_op;
    stages->free_op = op;
}

/* The medium has ended an operation. */
static void end_op(struct media_owner *owner, enum media_status status)
{
    struct stage_op *op = container_of(owner, struct stage_op, owner);
    struct stages *stages = op->stages;
    uint16_t number = (uint16_t)(op - stages->ops);

    if (!stages->is_several) {
        give_op(stages, number);
        media_end(stages->owners[number].whole, status);
        return;
    }
    stages->end[stages->ends.put++ % STAGE_OPS] = (struct stage_end){
        .op = number,
        .status = (uint8_t)status,
        .failed_block =
            status >= MEDIA_GUARD_ERROR && stages->inner.failed_block != NULL
                ? stages->inner.failed_block(stages->inner.ctx)
                : 0,
    };
}

static uint16_t take_op(struct stages *stages, struct media_owner *whole,
                        bool is_targets)
{
    uint16_t op = stages->free_op;

    if (op != NO_OP) {
        stages->free_op = stages->owners[op].next_free;
        stages->owners[op].whole = whole;
        stages->owners[op].is_targets = is_targets;
    }
    return op;
}

static inline bool submit_op(struct stages *stages, const struct media_io *io,
                             bool is_targets)
{
    uint16_t op = take_op(stages, io->owner, is_targets);

    if (op == NO_OP) {
        return false;
    }
    stages->ops[op].io = *io;
    stages->ops[op].io.owner = &stages->ops[op].owner;
    stages->start[stages->starts.put++ % STAGE_OPS] =
        (struct stage_start){op, is_targets};
    return true;
}

static bool seam_submit(void *ctx, const struct media_io *io)
{
    return submit_op(ctx, io, true);
}

bool stages_submit_own(void *ctx, const struct media_io *io)
{
    struct stages *stages = ctx;

    return stages->is_several ? submit_op(stages, io, false)
                              : nand_medium_submit(stages->parts.nand, io);
}

/* A sanitize operation begins in a turn, so it is no message. */
bool stages_wipe(void *ctx, struct media_owner *owner)
{
    struct stages *stages = ctx;
    uint16_t op = take_op(stages, owner, false);

    ASSERT(!stages->is_apart);
    if (op == NO_OP) {
        return false;
    }
    if (!nand_medium_wipe(stages->parts.nand, &stages->ops[op].owner)) {
        give_op(stages, op);
        return false;
    }
    return true;
}

static void seam_set_volatile(void *ctx, bool is_enabled)
{
    const struct nvmf_media *inner = &((struct stages *)ctx)->inner;

    inner->set_volatile(inner->ctx, is_enabled);
}

static void seam_geometry(void *ctx, uint32_t ns,
                          struct media_geometry *geometry)
{
    const struct nvmf_media *inner = &((struct stages *)ctx)->inner;

    inner->geometry(inner->ctx, ns, geometry);
}

static uint32_t seam_failed_block(void *ctx)
{
    return ((const struct stages *)ctx)->failed_block;
}

void stages_set_media(struct stages *stages, const struct nvmf_media *inner)
{
    stages->inner = *inner;
}

/* Start operations, until the medium has no room. */
static bool take_starts(struct stages *stages)
{
    struct stage_ring *ring = &stages->starts;
    uint32_t i = ring->taken, end = i + stage_ring_count(ring);
    bool any = i != end;

    for (; i != end; i++) {
        const struct stage_start *start = &stages->start[i % STAGE_OPS];
        const struct media_io *io = &stages->ops[start->op].io;

        if (!(start->is_targets ? stages->inner.submit(stages->inner.ctx, io)
                                : nand_medium_submit(stages->parts.nand, io))) {
            any = i != ring->taken;
            break;
        }
    }
    stages->lines[STAGE_MEDIUM] +=
        i - ring->taken; /* the line of each operation */
    stages->lines[STAGE_MEDIUM] +=
        stage_ring_take(ring, i, sizeof(stages->start[0]));
    return any;
}

static inline bool is_plain_op(const struct stages *stages, uint16_t op)
{
    return stages->owners[op].is_targets &&
           nvmf_media_is_plain(stages->parts.target, stages->owners[op].whole);
}

static void take_ends(struct stages *stages)
{
    struct stage_ring *ring = &stages->ends;
    uint32_t i = ring->taken;
    uint32_t end = stage_ring_end(ring, STAGE_BUDGET);

    for (; i != end; i++) {
        const struct stage_end *ended = &stages->end[i % STAGE_OPS];
        struct media_owner *whole = stages->owners[ended->op].whole;

        if (__builtin_expect(!is_plain_op(stages, ended->op), 0) &&
            stages->is_apart) {
            stages_request_turn(stages);
            break;
        }
        stages->failed_block = ended->failed_block;
        give_op(stages, ended->op);
        media_end(whole, (enum media_status)ended->status);
    }
    stages->lines[STAGE_TARGET] +=
        stage_ring_take(ring, i, sizeof(stages->end[0]));
}

/* ---- Stages. */

struct stages *stages_make(const struct stages_parts *parts, struct dram *dram)
{
    struct stages *stages = dram_alloc(dram, sizeof(*stages), STAGES_ALIGN);

    if (stages == NULL) {
        return NULL;
    }
    *stages = (struct stages){
        .parts = *parts,
        .wants_turn = true,
    };
    stages->relay = stages_relay(stages);
    for (unsigned int i = 0; i < STAGE_HARTS; i++) {
        stages->stage_of[i] = STAGES;
    }
    for (uint16_t i = 0; i < STAGE_OPS; i++) {
        stages->ops[i].owner.done = end_op;
        stages->ops[i].stages = stages;
        stages->owners[i].next_free = (uint16_t)(i + 1);
    }
    stages->owners[STAGE_OPS - 1].next_free = NO_OP;
    return stages;
}

/* @return whether there was anything to do */
static bool run_transport(struct stages *stages, uint64_t now_us)
{
    const struct stages_parts *parts = &stages->parts;
    bool is_other, any = stages_have_answers(stages);

    rdma_transport_tick(parts->rdma, now_us);
    any |= verbs_poll_plain(parts->verbs, STAGE_BUDGET, &is_other) != 0;
    if (any) {
        stages_take_answers(stages);
    }
    if (is_other || rdma_transport_needs_step(parts->rdma)) {
        stages_request_turn(stages);
    }
    return any;
}

static bool run_target(struct stages *stages)
{
    if (!stages_have_calls(stages) && stage_ring_count(&stages->ends) == 0) {
        return false;
    }
    take_ends(stages);
    stages_take_calls(stages);
    return true;
}

static bool run_medium(struct stages *stages, uint64_t now_us)
{
    const struct stages_parts *parts = &stages->parts;
    bool any = stage_ring_count(&stages->starts) != 0 ||
               now_us >= stages->medium_us || nand_stage_has_work(parts->nand);
    bool is_other = false;

    if (!any) {
        return false;
    }
    (void)take_starts(stages);
    stages->medium_us = LOOP_NO_DEADLINE;
    nand_stage_run(parts->nand, STAGE_BUDGET, now_us, &stages->medium_us,
                   &is_other);
    if (is_other || volume_has_work(parts->volume)) {
        stages_request_turn(stages);
    }
    return true;
}

static bool run_stage(struct stages *stages, enum drive_stage stage,
                      uint64_t now_us)
{
    switch (stage) {
    case STAGE_TRANSPORT:
        return run_transport(stages, now_us);
    case STAGE_TARGET:
        return run_target(stages);
    case STAGE_MEDIUM:
        return run_medium(stages, now_us);
    case STAGES:
        break;
    }
    return false;
}

static void give_stage(struct stages *stages, enum drive_stage stage)
{
    __atomic_store_n(&stages->holder[stage], 0, __ATOMIC_SEQ_CST);
}

/* Sequentially consistent, as stages_begin_turn() is: either this hart sees
 * that a turn is wanted, or hart 0 sees that the stage is taken. */
static bool try_stage(struct stages *stages, enum drive_stage stage,
                      unsigned int hart, uint64_t now_us)
{
    uint32_t nobody = 0;

    if (!__atomic_compare_exchange_n(&stages->holder[stage], &nobody, hart + 1,
                                     false, __ATOMIC_SEQ_CST,
                                     __ATOMIC_RELAXED)) {
        return false;
    }
    if (stages_want_turn(stages) || !run_stage(stages, stage, now_us)) {
        give_stage(stages, stage);
        return false;
    }
    stages->stage_of[hart] = (uint8_t)stage;
    stages->moves[stage] += stages->last[stage] != hart;
    stages->last[stage] = (uint8_t)hart;
    return true;
}

bool stages_take(struct stages *stages, unsigned int hart, uint64_t now_us)
{
    for (unsigned int i = 0; i < STAGES && !stages_want_turn(stages); i++) {
        /* The harts begin at different stages. */
        if (try_stage(stages, (enum drive_stage)((hart + i) % STAGES), hart,
                      now_us)) {
            return true;
        }
    }
    return false;
}

void stages_give(struct stages *stages, unsigned int hart)
{
    enum drive_stage stage = (enum drive_stage)stages->stage_of[hart];

    switch (stage) {
    case STAGE_TRANSPORT:
        stages_show_calls(stages);
        verbs_flush(stages->parts.verbs);
        break;
    case STAGE_TARGET:
        stages_show_answers(stages);
        stage_ring_show(&stages->starts, STAGE_OPS);
        break;
    case STAGE_MEDIUM:
        stage_ring_show(&stages->ends, STAGE_OPS);
        nand_kick(&stages->parts.nand->nand);
        break;
    case STAGES:
        break;
    }
    stages->stage_of[hart] = STAGES;
    give_stage(stages, stage);
}

/* ---- Turns of the main loop. */

/* Make the calls that wait as messages.  Operations for which the medium has no
 * room stay. */
static void empty_rings(struct stages *stages)
{
    bool any;

    stages_show_calls(stages);
    stages_show_answers(stages);
    do {
        stage_ring_show(&stages->starts, STAGE_OPS);
        any = take_starts(stages);
        stage_ring_show(&stages->ends, STAGE_OPS);
        any |= stage_ring_count(&stages->ends) != 0;
        take_ends(stages);
        any |= stages_have_calls(stages);
        any |= stages_have_answers(stages);
        stages_take_calls(stages);
        stages_take_answers(stages);
    } while (any);
}

/* Let the stages call each other, or send messages. */
static void set_apart(struct stages *stages, bool is_apart)
{
    stages->is_apart = is_apart;
    rdma_transport_use_relay(stages->parts.rdma, is_apart);
}

bool stages_begin_turn(struct stages *stages)
{
    stages_request_turn(stages);
    for (unsigned int i = 0; i < STAGES; i++) {
        if (__atomic_load_n(&stages->holder[i], __ATOMIC_SEQ_CST) != 0) {
            return false;
        }
    }
    set_apart(stages, false);
    empty_rings(stages);
    return true;
}

void stages_end_turn(struct stages *stages)
{
    empty_rings(stages);
    verbs_flush(stages->parts.verbs);
    nand_kick(&stages->parts.nand->nand);
    stages->medium_us = 0;
    set_apart(stages, true);
    __atomic_store_n(&stages->wants_turn, false, __ATOMIC_SEQ_CST);
}

void stages_use_harts(struct stages *stages, unsigned int harts)
{
    const struct nvmf_media seam = {
        .ctx = stages,
        .submit = seam_submit,
        .set_volatile = seam_set_volatile,
        .geometry = seam_geometry,
        .failed_block = seam_failed_block,
    };

    stages->is_several = harts > 1;
    nvmf_use_media(stages->parts.target,
                   stages->is_several ? &seam : &stages->inner);
    set_apart(stages, false);
    stages_request_turn(stages);
}
