/* SPDX-License-Identifier: BSD-2-Clause */
#include "firmware/usage/usage_keeper.h"

#include "nvmeof/wire/log.h"

enum {
    CHECK_US = 50000,
    ERRORS_A_STEP = 4, /* entries written in one step; each takes about 1 ms */
    MINUTE_US = 60000000,
    MINUTES_IN_HOUR = 60,
};

#define HOUR_US ((uint64_t)MINUTES_IN_HOUR * MINUTE_US)
#define PACE_US ((uint64_t)USAGE_PACE_MINUTES * MINUTE_US)

void usage_keeper_init(struct usage_keeper *keeper,
                       const struct usage_keeper_config *config,
                       uint64_t now_us)
{
    *keeper = (struct usage_keeper){
        .save = config->save,
        .save_error = config->save_error,
        .errors = config->errors,
        .save_ctx = config->save_ctx,
        .start = config->start,
        .start_us = now_us,
        .hour_us = now_us + HOUR_US,
    };
    if (config->usage != NULL) {
        keeper->usage = *config->usage;
    }
    keeper->start_minutes = keeper->usage.on_minutes;
    if (keeper->usage.is_in_use && config->is_power_on) {
        keeper->usage.unsafe_shutdowns++;
        keeper->was_unsafe = true;
        keeper->unsafe_start = keeper->usage.in_use_start;
        keeper->is_due = true; /* the first check writes it */
    }
}

const struct usage_flash *usage_keeper_add_flash(struct usage_keeper *keeper,
                                                 usage_flash_fn *read,
                                                 void *ctx)
{
    keeper->read_flash = read;
    keeper->flash_ctx = ctx;
    return &keeper->usage.flash;
}

void usage_keeper_fill(const struct usage_keeper *keeper,
                       struct nvmf_health *health,
                       struct nvmf_counters *counters)
{
    const struct usage *usage = &keeper->usage;

    health->power_on_hours = usage->on_minutes / MINUTES_IN_HOUR;
    health->unsafe_shutdowns = usage->unsafe_shutdowns;
    *counters = (struct nvmf_counters){
        .read_blocks_512 = usage->read_blocks_512,
        .written_blocks_512 = usage->written_blocks_512,
        .host_reads = usage->host_reads,
        .host_writes = usage->host_writes,
        .media_errors = usage->media_errors,
        .error_log_entries = usage->error_log_entries,
        .lba_generation = usage->lba_generation,
    };
}

uint64_t usage_keeper_power_on_hours(const struct usage_keeper *keeper)
{
    return keeper->usage.on_minutes / MINUTES_IN_HOUR;
}

bool usage_keeper_was_unsafe(const struct usage_keeper *keeper)
{
    return keeper->was_unsafe;
}

uint32_t usage_keeper_unsafe_start(const struct usage_keeper *keeper)
{
    return keeper->unsafe_start;
}

_Static_assert((int)STORE_ERRORS_SURE >= 3 * (int)NVMF_ERROR_LOG_ENTRIES,
               "flash gives back the whole log: see choose_errors()");

static struct log_error error_of(const struct error_record *record)
{
    return (struct log_error){
        .count = record->count,
        .sqid = record->sqid,
        .cid = record->cid,
        .status = record->status,
        .location = record->location,
        .lba = record->lba,
        .nsid = record->nsid,
        .trtype = record->trtype,
        .vendor_log = record->vendor_log,
        .has_time = record->has_time,
        .time_ms = record->time_ms,
        .owner = record->owner,
    };
}

static struct error_record record_of(const struct log_error *error)
{
    return (struct error_record){
        .count = error->count,
        .lba = error->lba,
        .time_ms = error->time_ms,
        .nsid = error->nsid,
        .sqid = error->sqid,
        .cid = error->cid,
        .status = error->status,
        .location = error->location,
        .trtype = error->trtype,
        .vendor_log = error->vendor_log,
        .has_time = error->has_time,
        .owner = error->owner,
    };
}

void usage_keeper_start(struct usage_keeper *keeper, struct nvmf_target *target)
{
    const struct error_records *errors = keeper->errors;

    for (uint16_t i = 0; errors != NULL && i < errors->count; i++) {
        struct log_error error = error_of(&errors->record[i]);

        nvmf_target_restore_error(target, &error);
    }
    keeper->errors_since =
        errors != NULL && errors->count != 0 ? NVMF_ERROR_LOG_ENTRIES : 0;
    keeper->errors = NULL;
    keeper->target = target;
    keeper->saved_errors = nvmf_target_counters(target)->error_log_entries;
}

/* Write at most `budget` entries that are not in flash yet, oldest first. */
static void save_errors(struct usage_keeper *keeper, unsigned int budget)
{
    for (; keeper->saved_errors != keeper->last_error && budget != 0;
         budget--) {
        struct log_error error;
        struct error_record record;

        if (!nvmf_target_error_after(keeper->target, keeper->saved_errors,
                                     &error) ||
            error.count > keeper->last_error) {
            keeper->saved_errors = keeper->last_error;
            return;
        }
        keeper->saved_errors = error.count;
        record = record_of(&error);
        if (keeper->save_error != NULL) {
            (void)keeper->save_error(keeper->save_ctx, &record);
        }
    }
}

/*
 * Choose which errors are written: those that are not in flash yet.  The start
 * reads the newest records only, and one host may have caused many since
 * another one's error was written.  So the whole log is written again before
 * the errors in it are too far back.
 */
static void choose_errors(struct usage_keeper *keeper)
{
    uint64_t fresh = keeper->last_error - keeper->saved_errors;

    if (fresh == 0) {
        return;
    }
    keeper->errors_since += (uint32_t)MIN(fresh, NVMF_ERROR_LOG_ENTRIES);
    if (keeper->errors_since > NVMF_ERROR_LOG_ENTRIES) {
        keeper->saved_errors = 0;
        keeper->errors_since = 0;
    }
}

/* Take the current counters, for save_records() to write. */
static void begin_save(struct usage_keeper *keeper, uint64_t now_us)
{
    const struct nvmf_counters *counters = nvmf_target_counters(keeper->target);
    struct usage *usage = &keeper->usage;

    usage->on_minutes = keeper->start_minutes +
                        (uint32_t)((now_us - keeper->start_us) / MINUTE_US);
    usage->read_blocks_512 = counters->read_blocks_512;
    usage->written_blocks_512 = counters->written_blocks_512;
    usage->host_reads = counters->host_reads;
    usage->host_writes = counters->host_writes;
    usage->media_errors = (uint32_t)counters->media_errors;
    usage->error_log_entries = (uint32_t)counters->error_log_entries;
    usage->lba_generation = (uint32_t)counters->lba_generation;
    if (keeper->read_flash != NULL) {
        keeper->read_flash(keeper->flash_ctx, &usage->flash);
    }
    keeper->last_error = counters->error_log_entries;
    choose_errors(keeper);
    keeper->is_due = false;
    keeper->is_saving = true;
}

/* Write what begin_save() took: first the errors, then the usage record. */
static void save_records(struct usage_keeper *keeper, unsigned int budget)
{
    save_errors(keeper, budget);
    if (keeper->saved_errors != keeper->last_error) {
        return;
    }
    keeper->is_saving = false;
    if (keeper->save != NULL) {
        /* If the flash refuses this record, the next one may succeed. */
        (void)keeper->save(keeper->save_ctx, &keeper->usage);
    }
}

/*
 * @return the time from which `records` records may be written at once.  The
 * number that may be written grows by one every PACE_US.
 */
static uint64_t allowed_us(const struct usage_keeper *keeper,
                           unsigned int records)
{
    uint64_t ahead_us = (USAGE_RECORDS_AT_ONCE - records) * PACE_US;

    return keeper->pace_us > ahead_us ? keeper->pace_us - ahead_us : 0;
}

static bool has_errors(const struct usage_keeper *keeper)
{
    uint64_t errors = nvmf_target_counters(keeper->target)->error_log_entries;

    return (uint32_t)errors != keeper->usage.error_log_entries;
}

static bool has_media_errors(const struct usage_keeper *keeper)
{
    const struct nvmf_counters *counters = nvmf_target_counters(keeper->target);

    return (uint32_t)counters->media_errors != keeper->usage.media_errors ||
           (uint32_t)counters->lba_generation != keeper->usage.lba_generation;
}

/*
 * When a record is due; UINT64_MAX when there is nothing to write.  The last of
 * the records that may be written at once is reserved for the first host that
 * enables a controller, so that every power cut under a host is counted.  A
 * record because the last host has left, or because of media errors, leaves
 * that one unused; a record because of other errors leaves two unused.
 */
static uint64_t due_us(const struct usage_keeper *keeper, bool is_in_use)
{
    bool is_recorded =
        keeper->usage.is_in_use && keeper->usage.in_use_start == keeper->start;

    if (keeper->is_due || (is_in_use && !is_recorded)) {
        return allowed_us(keeper, 1);
    }
    if (is_in_use != keeper->usage.is_in_use || has_media_errors(keeper)) {
        return allowed_us(keeper, 2);
    }
    return has_errors(keeper) ? MAX(allowed_us(keeper, 3), keeper->errors_us)
                              : UINT64_MAX;
}

uint64_t usage_keeper_step(struct usage_keeper *keeper, uint64_t now_us)
{
    bool is_hour = now_us >= keeper->hour_us;
    uint64_t at_us;
    bool is_in_use;

    if (keeper->is_saving) {
        save_records(keeper, ERRORS_A_STEP);
        return now_us;
    }
    if (now_us < keeper->check_us && !is_hour) {
        return MIN(keeper->check_us, keeper->hour_us);
    }
    keeper->check_us = now_us + CHECK_US;
    is_in_use = nvmf_target_is_in_use(keeper->target);
    at_us = due_us(keeper, is_in_use);
    if (at_us <= now_us) {
        keeper->pace_us = MAX(keeper->pace_us, now_us) + PACE_US;
        keeper->usage.is_in_use = is_in_use;
        keeper->usage.in_use_start = keeper->start;
    }
    if (at_us <= now_us || is_hour) {
        if (has_errors(keeper)) {
            keeper->errors_us = now_us + PACE_US;
        }
        begin_save(keeper, now_us);
    }
    if (is_hour) {
        keeper->hour_us += HOUR_US;
        nvmf_target_set_power_on_hours(
            keeper->target, keeper->usage.on_minutes / MINUTES_IN_HOUR);
    }
    if (keeper->is_saving) {
        return now_us;
    }
    return MIN(at_us, keeper->hour_us);
}

void usage_keeper_stop(struct usage_keeper *keeper, bool is_flushed,
                       uint64_t now_us)
{
    keeper->usage.is_in_use = nvmf_target_is_in_use(keeper->target);
    keeper->usage.in_use_start = is_flushed ? 0 : keeper->start;
    begin_save(keeper, now_us);
    save_records(keeper, NVMF_ERROR_LOG_ENTRIES);
}
