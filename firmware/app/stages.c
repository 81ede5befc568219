/* SPDX-License-Identifier: BSD-2-Clause */
#include "firmware/app/stages.h"

#include "firmware/app/drive.h"
#include "firmware/app/stages_inside.h"
#include "firmware/medium/nand_stage.h"
#include "nvmeof/target/plain.h"

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

static void give_op(struct stages *stages, struct stage_op *op)
{
    op->next_free = stages->free_op;
    stages->free_op = (uint16_t)(op - stages->ops);
}

/* The medium has ended an operation. */
static void end_op(struct media_owner *owner, enum media_status status)
{
    struct stage_op *op = container_of(owner, struct stage_op, owner);
    struct stages *stages = op->stages;
    struct stage_ring *ring = &stages->ended;

    if (!stages->is_several) {
        struct media_owner *whole = op->whole;

        give_op(stages, op);
        media_end(whole, status);
        return;
    }
    op->status = (uint8_t)status;
    op->failed_block =
        status >= MEDIA_GUARD_ERROR && stages->inner.failed_block != NULL
            ? stages->inner.failed_block(stages->inner.ctx)
            : 0;
    stages->end[ring->put++ % STAGE_OPS] = (uint16_t)(op - stages->ops);
}

static struct stage_op *take_op(struct stages *stages,
                                struct media_owner *whole, bool is_targets)
{
    struct stage_op *op;

    if (stages->free_op == NO_OP) {
        return NULL;
    }
    op = &stages->ops[stages->free_op];
    stages->free_op = op->next_free;
    op->whole = whole;
    op->is_targets = is_targets;
    return op;
}

static bool submit_op(struct stages *stages, const struct media_io *io,
                      bool is_targets)
{
    struct stage_ring *ring = &stages->submitted;
    struct stage_op *op = take_op(stages, io->owner, is_targets);

    if (op == NULL) {
        return false;
    }
    op->io = *io;
    op->io.owner = &op->owner;
    stages->submit[ring->put++ % STAGE_OPS] = (uint16_t)(op - stages->ops);
    if (!stages->is_apart) {
        stage_ring_show(ring);
    }
    return true;
}

static bool seam_submit(void *ctx, const struct media_io *io)
{
    struct stages *stages = ctx;

    return stages->is_several ? submit_op(stages, io, true)
                              : stages->inner.submit(stages->inner.ctx, io);
}

bool stages_submit_own(void *ctx, const struct media_io *io)
{
    struct stages *stages = ctx;

    return stages->is_several ? submit_op(stages, io, false)
                              : nand_medium_submit(&stages->drive->nand, io);
}

/* A sanitize operation begins in a turn, so it is no message. */
bool stages_wipe(void *ctx, struct media_owner *owner)
{
    struct stages *stages = ctx;
    struct stage_op *op = take_op(stages, owner, false);

    ASSERT(!stages->is_apart);
    if (op == NULL) {
        return false;
    }
    if (!nand_medium_wipe(&stages->drive->nand, &op->owner)) {
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
    const struct stages *stages = ctx;

    return stages->is_several ? stages->failed_block
                              : stages->inner.failed_block(stages->inner.ctx);
}

struct nvmf_media stages_media(struct stages *stages,
                               const struct nvmf_media *inner)
{
    stages->inner = *inner;
    return (struct nvmf_media){
        .ctx = stages,
        .submit = seam_submit,
        .set_volatile = seam_set_volatile,
        .geometry = seam_geometry,
        .failed_block = seam_failed_block,
    };
}

/* Start operations, until the medium has no room. */
static bool take_submitted(struct stages *stages)
{
    struct stage_ring *ring = &stages->submitted;
    bool any = false;

    while (stage_ring_has_message(ring)) {
        struct stage_op *op =
            &stages->ops[stages->submit[ring->taken % STAGE_OPS]];
        bool is_started =
            op->is_targets ? stages->inner.submit(stages->inner.ctx, &op->io)
                           : nand_medium_submit(&stages->drive->nand, &op->io);

        if (!is_started) {
            break;
        }
        any = true;
        stages->messages++;
        stage_ring_take(ring);
    }
    return any;
}

static bool is_plain_op(const struct stages *stages, const struct stage_op *op)
{
    return op->is_targets &&
           nvmf_media_is_plain(stages->drive->target, op->whole);
}

static void take_ended(struct stages *stages)
{
    struct stage_ring *ring = &stages->ended;

    for (unsigned int n = 0; n < STAGE_BUDGET && stage_ring_has_message(ring);
         n++) {
        struct stage_op *op =
            &stages->ops[stages->end[ring->taken % STAGE_OPS]];
        struct media_owner *whole = op->whole;

        if (stages->is_apart && !is_plain_op(stages, op)) {
            stages_request_turn(stages);
            return;
        }
        stages->failed_block = op->failed_block;
        give_op(stages, op);
        stages->messages++;
        stage_ring_take(ring);
        media_end(whole, (enum media_status)op->status);
    }
}

/* ---- Stages. */

struct stages *stages_make(struct drive *drive, struct dram *dram)
{
    struct stages *stages = dram_alloc(dram, sizeof(*stages), STAGES_ALIGN);

    if (stages == NULL) {
        return NULL;
    }
    *stages = (struct stages){
        .drive = drive,
        .wants_turn = true,
    };
    stages->relay = stages_relay(stages);
    for (unsigned int i = 0; i < STAGE_HARTS; i++) {
        stages->stage_of[i] = STAGES;
    }
    for (uint16_t i = 0; i < STAGE_OPS; i++) {
        stages->ops[i].owner.done = end_op;
        stages->ops[i].stages = stages;
        stages->ops[i].next_free = (uint16_t)(i + 1);
    }
    stages->ops[STAGE_OPS - 1].next_free = NO_OP;
    return stages;
}

static bool transport_has_work(struct stages *stages)
{
    struct drive *drive = stages->drive;
    enum verbs_next next = verbs_next(&drive->net.verbs);

    if (next == VERBS_NEXT_OTHER || rdma_transport_needs_step(drive->rdma)) {
        stages_request_turn(stages);
    }
    return next == VERBS_NEXT_PLAIN || stage_ring_has_message(&stages->answers);
}

static bool medium_has_work(struct stages *stages, uint64_t now_us)
{
    enum nand_stage_next next = nand_stage_next(&stages->drive->nand);

    if (next == NAND_STAGE_OTHER || volume_has_work(stages->drive->volume)) {
        stages_request_turn(stages);
    }
    return next == NAND_STAGE_WORK || now_us >= stages->medium_us ||
           stage_ring_has_message(&stages->submitted);
}

static bool stage_has_work(struct stages *stages, enum drive_stage stage,
                           uint64_t now_us)
{
    switch (stage) {
    case STAGE_TRANSPORT:
        return transport_has_work(stages);
    case STAGE_TARGET:
        return stage_ring_has_message(&stages->calls) ||
               stage_ring_has_message(&stages->ended);
    case STAGE_MEDIUM:
        return medium_has_work(stages, now_us);
    case STAGES:
        break;
    }
    return false;
}

static void run_stage(struct stages *stages, enum drive_stage stage,
                      uint64_t now_us)
{
    struct drive *drive = stages->drive;

    switch (stage) {
    case STAGE_TRANSPORT:
        rdma_transport_tick(drive->rdma, now_us);
        (void)verbs_poll_plain(&drive->net.verbs, STAGE_BUDGET);
        stages_take_answers(stages);
        break;
    case STAGE_TARGET:
        take_ended(stages);
        stages_take_calls(stages);
        break;
    case STAGE_MEDIUM:
        (void)take_submitted(stages);
        stages->medium_us = LOOP_NO_DEADLINE;
        nand_stage_run(&drive->nand, STAGE_BUDGET, now_us, &stages->medium_us);
        break;
    case STAGES:
        break;
    }
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
    if (stages_want_turn(stages) || !stage_has_work(stages, stage, now_us)) {
        give_stage(stages, stage);
        return false;
    }
    stages->stage_of[hart] = (uint8_t)stage;
    stages->moves[stage] += stages->last[stage] != hart;
    stages->last[stage] = (uint8_t)hart;
    run_stage(stages, stage, now_us);
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
        stage_ring_show(&stages->calls);
        verbs_flush(&stages->drive->net.verbs);
        break;
    case STAGE_TARGET:
        stage_ring_show(&stages->answers);
        stage_ring_show(&stages->submitted);
        break;
    case STAGE_MEDIUM:
        stage_ring_show(&stages->ended);
        nand_kick(&stages->drive->nand.nand);
        break;
    case STAGES:
        break;
    }
    stages->stage_of[hart] = STAGES;
    give_stage(stages, stage);
}

/* ---- Turns of the main loop. */

static bool any_messages(const struct stages *stages)
{
    return stage_ring_has_message(&stages->calls) ||
           stage_ring_has_message(&stages->answers) ||
           stage_ring_has_message(&stages->ended);
}

/* Make the calls that wait as messages.  Operations for which the medium has no
 * room stay. */
static void empty_rings(struct stages *stages)
{
    do {
        bool is_started = take_submitted(stages);

        stage_ring_show(&stages->ended);
        take_ended(stages);
        stages_take_calls(stages);
        stages_take_answers(stages);
        if (!is_started && !any_messages(stages)) {
            return;
        }
    } while (true);
}

bool stages_begin_turn(struct stages *stages)
{
    stages_request_turn(stages);
    for (unsigned int i = 0; i < STAGES; i++) {
        if (__atomic_load_n(&stages->holder[i], __ATOMIC_SEQ_CST) != 0) {
            return false;
        }
    }
    stages->is_apart = false;
    empty_rings(stages);
    return true;
}

void stages_end_turn(struct stages *stages)
{
    empty_rings(stages);
    verbs_flush(&stages->drive->net.verbs);
    nand_kick(&stages->drive->nand.nand);
    stages->medium_us = 0;
    stages->is_apart = true;
    __atomic_store_n(&stages->wants_turn, false, __ATOMIC_SEQ_CST);
}

void stages_use_harts(struct stages *stages, unsigned int harts)
{
    stages->is_several = harts > 1;
    stages->is_apart = false;
    stages_request_turn(stages);
}
