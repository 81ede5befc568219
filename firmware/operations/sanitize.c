/* SPDX-License-Identifier: BSD-2-Clause */
#include "firmware/operations/sanitize.h"

#include <string.h>

#include "lib/bytes.h"

enum {
    BLOCK_SHIFT = 9,
    POLL_US = 50, /* while an operation is in progress */

    /* How fast the emulated medium is at least, for the estimates. */
    OVERWRITE_MIB_S = 200,
    ZERO_MIB_S = 1024,
    ERASE_MIB_S = 16384,
    ESTIMATE_PASSES = 16, /* which the log page's estimates are for */
};

/* ---- The record in flash. */

static bool save_state(struct sanitize *sanitize)
{
    const struct operation_store *store = &sanitize->config.store;
    uint8_t record[SANITIZE_RECORD_LEN];

    sanitize->is_clock_running = false;
    sanitize_record_emit(&sanitize->state, record);
    if (store->save == NULL ||
        !store->save(store->ctx, record, sizeof(record))) {
        log_line(sanitize->config.log,
                 "sanitize: writing its record to flash failed");
        return false;
    }
    sanitize->writes++;
    return true;
}

/* ---- Passes. */

/* Passes of the whole operation, with the final deallocation. */
static uint8_t all_passes(const struct nvmf_sanitize *job)
{
    if (job->action != NVMF_SANITIZE_OVERWRITE) {
        return 1;
    }
    return (uint8_t)(job->passes + (job->keeps_blocks ? 0 : 1));
}

/* What the current pass does with each block. */
static enum media_op pass_op(const struct sanitize_state *state)
{
    if (state->job.action == NVMF_SANITIZE_OVERWRITE &&
        state->passes < state->job.passes) {
        return MEDIA_WRITE;
    }
    return state->job.keeps_blocks ? MEDIA_WRITE_ZEROES : MEDIA_DEALLOCATE;
}

/*
 * The pattern of the current pass.  When passes alternate, the last one writes
 * the pattern itself.
 * Spec: Base 1.4 8.15, figure "Sanitize Operations - Overwrite Mechanism"
 */
static uint32_t pass_pattern(const struct sanitize_state *state)
{
    bool is_inverse =
        state->job.inverts && (state->job.passes - 1u - state->passes) % 2 != 0;

    return is_inverse ? ~state->job.pattern : state->job.pattern;
}

static void fill_buffer(struct sanitize *sanitize)
{
    uint32_t pattern = pass_pattern(&sanitize->state);

    for (uint32_t at = 0; at < SANITIZE_BUFFER_BYTES; at += 4) {
        put_le32(sanitize->config.buffer + at, pattern);
    }
    sanitize->is_filled = true;
}

/* ---- The medium. */

static void start_flush(struct sanitize *sanitize)
{
    const struct sanitize_config *config = &sanitize->config;
    const struct media_io io = media_own_flush(&sanitize->owner);

    sanitize->is_flushing = true;
    sanitize->is_busy = config->submit(config->submit_ctx, &io);
}

static void start_blocks(struct sanitize *sanitize)
{
    const struct sanitize_config *config = &sanitize->config;
    const struct sanitize_state *state = &sanitize->state;
    struct media_io io = {
        .op = pass_op(state),
        .first_lba = state->done_blocks,
        .pieces = sanitize->pieces,
        .owner = &sanitize->owner,
        .number = MEDIA_NO_NUMBER,
    };
    uint32_t most = io.op == MEDIA_WRITE
                        ? (uint32_t)SANITIZE_WRITE_BYTES >> BLOCK_SHIFT
                        : (uint32_t)SANITIZE_ERASE_BYTES >> BLOCK_SHIFT;
    uint32_t left;

    io.count_blocks = (uint32_t)MIN(config->medium_blocks - state->done_blocks,
                                    (uint64_t)most);
    if (io.op == MEDIA_WRITE) {
        if (!sanitize->is_filled) {
            fill_buffer(sanitize);
        }
        left = io.count_blocks << BLOCK_SHIFT;
        while (left != 0) {
            uint32_t len = MIN(left, (uint32_t)SANITIZE_BUFFER_BYTES);

            sanitize->pieces[io.piece_count++] =
                (struct nvmf_piece){.ptr = config->buffer, .len_bytes = len};
            left -= len;
        }
    }
    sanitize->is_flushing = false;
    sanitize->io_blocks = io.count_blocks;
    sanitize->is_busy = config->submit(config->submit_ctx, &io);
}

/*
 * Whether the medium is wiped now: at the beginning of the operation, which
 * after a power cut may be for the second time, and instead of a deallocation.
 */
static bool must_wipe(const struct sanitize *sanitize)
{
    const struct sanitize_state *state = &sanitize->state;

    return sanitize->config.wipe != NULL && !sanitize->is_wiped &&
           state->done_blocks == 0 &&
           (state->passes == 0 || pass_op(state) == MEDIA_DEALLOCATE);
}

static void start_wipe(struct sanitize *sanitize)
{
    const struct sanitize_config *config = &sanitize->config;

    sanitize->is_flushing = false;
    sanitize->is_wiping = true;
    sanitize->is_busy = config->wipe(config->submit_ctx, &sanitize->owner);
}

/* Blocks of a medium that was wiped are zero and deallocated. */
static void end_wipe(struct sanitize *sanitize)
{
    sanitize->is_wiping = false;
    sanitize->is_wiped = true;
    if (pass_op(&sanitize->state) != MEDIA_WRITE) {
        sanitize->state.done_blocks = sanitize->config.medium_blocks;
    }
}

/* ---- The end. */

static void end_operation(struct sanitize *sanitize, bool is_ok)
{
    const struct sanitize_config *config = &sanitize->config;
    struct sanitize_state *state = &sanitize->state;

    state->outcome = is_ok ? NVMF_SANITIZE_DONE : NVMF_SANITIZE_FAILED;
    state->is_blocking = !is_ok;
    state->is_erased = is_ok;
    if (is_ok) {
        log_line(config->log, "sanitize: the whole medium has been sanitized");
    } else {
        log_line(config->log,
                 "sanitize: the medium does not erase block %lu; commands are "
                 "refused until a Sanitize succeeds%s",
                 (unsigned long)state->done_blocks,
                 state->job.allows_exit ? " or leaves the failure mode" : "");
    }
    /* If this fails, the operation is repeated after the next power cut. */
    (void)save_state(sanitize);
    config->ended(config->ctx, is_ok);
}

/* Everything that was submitted is on the medium. */
static void end_flush(struct sanitize *sanitize)
{
    struct sanitize_state *state = &sanitize->state;

    if (state->done_blocks == sanitize->config.medium_blocks) {
        state->passes++;
        state->done_blocks = 0;
        sanitize->is_filled = false;
        sanitize->is_wiped = false;
    }
    if (state->passes == all_passes(&state->job)) {
        end_operation(sanitize, true);
    } else {
        (void)save_state(sanitize);
    }
}

static void take_status(struct sanitize *sanitize)
{
    sanitize->has_status = false;
    if (sanitize->status != MEDIA_OK) {
        end_operation(sanitize, false);
    } else if (sanitize->is_wiping) {
        end_wipe(sanitize);
    } else if (sanitize->is_flushing) {
        end_flush(sanitize);
    } else {
        sanitize->state.done_blocks += sanitize->io_blocks;
    }
}

/* ---- Interface. */

/*
 * Whether the record says what the last operation is.  An older record that
 * says that one is in progress does: if this one has ended, the medium has been
 * erased, and no host has written, as that is a record, too.
 */
static bool read_record(struct sanitize *sanitize)
{
    const struct operation_store *store = &sanitize->config.store;

    return store->state != OPERATION_RECORD_DAMAGED &&
           sanitize_record_parse(&sanitize->state, store->record, store->len) &&
           (store->state != OPERATION_RECORD_OLDER ||
            sanitize->state.outcome == NVMF_SANITIZE_IN_PROGRESS);
}

/* An operation that is forgotten would leave data that its host takes for
 * erased: so it counts as one that has failed. */
static void take_record(struct sanitize *sanitize)
{
    if (sanitize->config.store.state == OPERATION_RECORD_NONE ||
        read_record(sanitize)) {
        return;
    }
    log_line(sanitize->config.log,
             "sanitize: the newest record in flash is damaged, so an operation "
             "may be forgotten, and what it was to erase is still there; no "
             "host may read or write until one sanitizes the medium again, or "
             "ends the failure (nvme sanitize --sanact=1)");
    sanitize->state = (struct sanitize_state){
        .outcome = NVMF_SANITIZE_FAILED,
        .is_blocking = true,
        .job = {.action = NVMF_SANITIZE_BLOCK_ERASE,
                .passes = 1,
                .allows_exit = true},
    };
}

/*
 * An operation cannot end well while a part of a namespace is missing: when the
 * medium has its former length again, that part would be there as before.  It
 * counts as failed, but not in flash, so that it goes on at that start.
 */
static void suspend_operation(struct sanitize *sanitize)
{
    log_line(
        sanitize->config.log,
        "sanitize: the operation cannot go on, because a namespace extends "
        "beyond the end of the medium; give the drive its former medium "
        "back");
    sanitize->state.outcome = NVMF_SANITIZE_FAILED;
    sanitize->state.is_blocking = true;
}

static void end_media(struct media_owner *owner, enum media_status status)
{
    struct sanitize *sanitize = container_of(owner, struct sanitize, owner);

    sanitize->is_busy = false;
    sanitize->has_status = true;
    sanitize->status = status;
}

void sanitize_init(struct sanitize *sanitize,
                   const struct sanitize_config *config)
{
    memset(sanitize, 0, sizeof(*sanitize));
    sanitize->config = *config;
    sanitize->owner.done = end_media;
    sanitize->writes = config->store.writes;
    take_record(sanitize);
    sanitize->config.store.record = NULL; /* the caller may free it */
    if (sanitize->state.outcome == NVMF_SANITIZE_IN_PROGRESS &&
        config->is_short) {
        suspend_operation(sanitize);
    } else if (sanitize->state.outcome == NVMF_SANITIZE_IN_PROGRESS) {
        log_line(config->log,
                 "sanitize: the operation goes on, which a reset or power cut "
                 "has interrupted");
        /* The medium may be another one than before. */
        if (sanitize->state.done_blocks > config->medium_blocks) {
            sanitize->state.done_blocks = 0;
        }
    }
}

enum nvmf_volume_result sanitize_start(struct sanitize *sanitize,
                                       const struct nvmf_sanitize *job)
{
    const struct sanitize_config *config = &sanitize->config;
    struct sanitize_state before = sanitize->state;

    if (config->is_short) {
        log_line(
            config->log,
            "sanitize: refused, because a namespace extends beyond the end "
            "of the medium; give the drive its former medium back");
        return NVMF_VOLUME_FAILED;
    }
    if (!operation_may_save(sanitize->writes,
                            config->power_on_hours(config->ctx))) {
        log_line(config->log,
                 "sanitize: refused to spare the flash, which was written %u "
                 "times; %u writes an hour are possible",
                 sanitize->writes, OPERATION_SAVES_PER_HOUR);
        return NVMF_VOLUME_TOO_OFTEN;
    }
    sanitize->state = (struct sanitize_state){
        .outcome = NVMF_SANITIZE_IN_PROGRESS, .job = *job};
    if (!save_state(sanitize)) {
        sanitize->state = before;
        return NVMF_VOLUME_FAILED;
    }
    sanitize->is_filled = false;
    sanitize->is_wiped = false;
    sanitize->is_wiping = false;
    log_line(config->log, "sanitize: %s of the whole medium has begun",
             job->action == NVMF_SANITIZE_OVERWRITE ? "the overwriting"
                                                    : "the block erasure");
    return NVMF_VOLUME_OK;
}

bool sanitize_exit_failure(struct sanitize *sanitize)
{
    if (!sanitize->state.is_blocking) {
        return true;
    }
    sanitize->state.is_blocking = false;
    if (!save_state(sanitize)) {
        sanitize->state.is_blocking = true;
        return false;
    }
    return true;
}

static uint32_t estimate_seconds(const struct sanitize *sanitize,
                                 uint32_t mib_s)
{
    uint64_t mib = sanitize->config.medium_blocks >> (20 - BLOCK_SHIFT);

    return (uint32_t)MIN(mib / mib_s + 1, UINT32_MAX - 1);
}

void sanitize_read(const struct sanitize *sanitize,
                   struct nvmf_sanitize_now *now)
{
    const struct sanitize_state *state = &sanitize->state;
    uint32_t erase = estimate_seconds(sanitize, ERASE_MIB_S);
    uint32_t overwrite =
        estimate_seconds(sanitize, OVERWRITE_MIB_S) * ESTIMATE_PASSES;
    uint64_t total = 1;

    *now = (struct nvmf_sanitize_now){
        .outcome = state->outcome,
        .is_blocking = state->is_blocking,
        .is_erased = state->is_erased,
        .passes = (uint8_t)MIN(state->passes, state->job.passes),
        .job = state->job,
        .seconds = {[NVMF_SANITIZE_OVERWRITE_TIME] = overwrite + erase,
                    [NVMF_SANITIZE_ERASE_TIME] = erase,
                    [NVMF_SANITIZE_OVERWRITE_KEEP_TIME] = overwrite,
                    [NVMF_SANITIZE_ERASE_KEEP_TIME] =
                        estimate_seconds(sanitize, ZERO_MIB_S)},
    };
    if (state->outcome == NVMF_SANITIZE_IN_PROGRESS) {
        total = sanitize->config.medium_blocks * all_passes(&state->job);
        now->progress =
            (uint16_t)MIN((sanitize->config.medium_blocks * state->passes +
                           state->done_blocks) *
                              65536 / MAX(total, 1),
                          UINT16_MAX);
    }
}

bool sanitize_is_erased(const struct sanitize *sanitize)
{
    return sanitize->state.is_erased;
}

void sanitize_note_write(struct sanitize *sanitize)
{
    if (sanitize->state.is_erased) {
        sanitize->state.is_erased = false;
        (void)save_state(sanitize);
    }
}

uint64_t sanitize_step(struct sanitize *sanitize, uint64_t now_us)
{
    struct sanitize_state *state = &sanitize->state;

    if (state->outcome != NVMF_SANITIZE_IN_PROGRESS) {
        return UINT64_MAX;
    }
    if (sanitize->has_status) {
        take_status(sanitize);
    }
    if (state->outcome != NVMF_SANITIZE_IN_PROGRESS) {
        return UINT64_MAX;
    }
    if (!sanitize->is_clock_running) {
        sanitize->is_clock_running = true;
        sanitize->checkpoint_us = now_us + SANITIZE_CHECKPOINT_US;
    }
    if (!sanitize->is_busy) {
        if (must_wipe(sanitize)) {
            start_wipe(sanitize);
        } else if (state->done_blocks == sanitize->config.medium_blocks ||
                   now_us >= sanitize->checkpoint_us) {
            start_flush(sanitize);
        } else {
            start_blocks(sanitize);
        }
    }
    return now_us + POLL_US;
}
