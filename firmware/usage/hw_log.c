/* SPDX-License-Identifier: BSD-2-Clause */
#include "firmware/usage/hw_log.h"

void hw_log_init(struct hw_log *log, const struct hw_log_config *config)
{
    *log = (struct hw_log){
        .save = config->save,
        .save_ctx = config->save_ctx,
        .boot = config->boot,
        .save_us = UINT64_MAX,
    };
    if (config->records != NULL) {
        log->records = *config->records;
    }
    if (log->records.count != 0) {
        log->number = log->records.error[log->records.count - 1].number;
    }
    log->saved = log->number;
}

/* The newest entry, if it waits for flash and is about the same thing. */
static struct hw_error *find_same(struct hw_log *log,
                                  const struct hw_error *error)
{
    struct hw_error *last;

    if (log->number == log->saved || error->is_fatal) {
        return NULL;
    }
    last = &log->records.error[log->records.count - 1];
    return last->kind == error->kind && last->address == error->address &&
                   last->repeats != UINT16_MAX
               ? last
               : NULL;
}

/* Whether an error may become an entry. */
static bool has_room(struct hw_log *log, const struct hw_error *error,
                     uint64_t now_us)
{
    if (now_us >= log->minute_us) {
        log->minute_us = now_us + HW_LOG_PERIOD_US;
        log->entries = 0;
    }
    return log->entries < (error->is_fatal ? HW_LOG_MOST : HW_LOG_NEW);
}

static void add_entry(struct hw_log *log, const struct hw_error *error,
                      uint64_t now_us)
{
    struct hw_error entry = *error;

    log->entries++;
    entry.number = ++log->number;
    entry.boot = log->boot;
    hw_error_records_add(&log->records, &entry);
    if (error->is_fatal) {
        log->save_us = now_us;
    } else if (log->save_us == UINT64_MAX) {
        log->save_us = now_us + HW_LOG_PERIOD_US;
    }
}

void hw_log_note(struct hw_log *log, const struct hw_error *error,
                 uint64_t now_us)
{
    struct hw_error *same = find_same(log, error);

    if (same != NULL) {
        same->repeats++;
        same->info = error->info;
        return;
    }
    if (!has_room(log, error, now_us)) {
        log->dropped++;
        return;
    }
    add_entry(log, error, now_us);
}

void hw_log_note_reset(struct hw_log *log, const struct hw_error *error,
                       uint64_t now_us)
{
    ASSERT(error->is_fatal);
    add_entry(log, error, now_us);
}

/* If the flash refuses an error, this error is not written again. */
static void save_errors(struct hw_log *log)
{
    for (uint16_t i = 0; i < log->records.count; i++) {
        const struct hw_error *error = &log->records.error[i];

        if (error->number > log->saved && log->save != NULL) {
            (void)log->save(log->save_ctx, error);
        }
    }
    log->saved = log->number;
    log->save_us = UINT64_MAX;
}

uint64_t hw_log_step(struct hw_log *log, uint64_t now_us)
{
    if (now_us >= log->save_us) {
        save_errors(log);
    }
    return log->save_us;
}

void hw_log_stop(struct hw_log *log)
{
    save_errors(log);
}
