/* SPDX-License-Identifier: BSD-2-Clause */
#include "firmware/update/updater.h"

#include <string.h>

#include "firmware/update/update_internal.h"

enum {
    PACE_US = 100, /* between two flash commands, for other work */
    ERASE_POLL_US =
        500, /* until the flash is asked for the end of an erasure */
};

static const uint16_t phase_next[UPDATER_PHASES] = {
    [UPDATER_IDLE] = BIT(UPDATER_STARTING),
    [UPDATER_STARTING] = BIT(UPDATER_WAITING) | BIT(UPDATER_PROVING) |
                         BIT(UPDATER_HASHING) | BIT(UPDATER_READING) |
                         BIT(UPDATER_IDLE),
    [UPDATER_WAITING] = BIT(UPDATER_STARTING) | BIT(UPDATER_IDLE),
    [UPDATER_PROVING] = BIT(UPDATER_HASHING) | BIT(UPDATER_IDLE),
    [UPDATER_HASHING] = BIT(UPDATER_PREPARING) | BIT(UPDATER_IDLE),
    [UPDATER_PREPARING] = BIT(UPDATER_ERASING) | BIT(UPDATER_IDLE),
    [UPDATER_ERASING] = BIT(UPDATER_PROGRAMMING) | BIT(UPDATER_IDLE),
    [UPDATER_PROGRAMMING] = BIT(UPDATER_COMPARING) | BIT(UPDATER_IDLE),
    [UPDATER_COMPARING] = BIT(UPDATER_RECORDING) | BIT(UPDATER_IDLE),
    [UPDATER_READING] = BIT(UPDATER_RECORDING) | BIT(UPDATER_IDLE),
    [UPDATER_RECORDING] = BIT(UPDATER_IDLE),
};

void updater_enter(struct updater *updater, enum updater_phase next)
{
    ASSERT(phase_next[updater->phase] & BIT(next));
    updater->phase = next;
    updater->at = 0;
}

static char slot_name(uint8_t slot)
{
    return "-AB"[slot];
}

void updater_init(struct updater *updater, const struct updater_config *config)
{
    struct update_slots_config slots = {
        .log = config->log,
        .flash = config->flash,
        .running = config->running,
        .is_unplanned = config->is_unplanned,
        .dram_addr = config->dram_addr,
        .dram_bytes = config->dram_bytes,
    };

    *updater = (struct updater){
        .config = *config,
        .rules =
            {
                .dram_addr = config->dram_addr,
                .dram_bytes = config->dram_bytes,
                .key = config->key,
            },
    };
    memcpy(slots.is_bad, config->is_bad, sizeof(slots.is_bad));
    if (config->flash != NULL) {
        update_slots_init(&updater->slots, &slots);
    }
}

uint8_t updater_next(const struct updater *updater)
{
    return update_slots_next(&updater->slots);
}

bool updater_is_busy(const struct updater *updater)
{
    return updater->phase != UPDATER_IDLE;
}

uint8_t updater_given_up(const struct updater *updater,
                         enum slot_failure *failure)
{
    if (failure != NULL) {
        *failure = (enum slot_failure)updater->slots.record.failure;
    }
    return updater->slots.reported;
}

void updater_reported(struct updater *updater)
{
    update_slots_set_reported(&updater->slots);
}

bool updater_is_on_trial(const struct updater *updater)
{
    return update_slots_is_on_trial(&updater->slots);
}

struct write_shares *updater_store_shares(struct updater *updater)
{
    return &updater->stores;
}

struct write_shares *updater_record_shares(struct updater *updater)
{
    return &updater->records;
}

/* ---- Erasures. */

enum flash_progress updater_erase(struct updater *updater, uint32_t addr)
{
    enum flash_progress progress = FLASH_BUSY;

    if (updater->is_erasing) {
        progress = flash_poll(updater->config.flash);
    } else {
        flash_start_erase(updater->config.flash, addr);
    }
    updater->is_erasing = progress == FLASH_BUSY;
    return progress;
}

bool updater_prepare_record(struct updater *updater)
{
    struct update_slots *slots = &updater->slots;

    while (!update_slots_is_erased(slots)) {
        switch (updater_erase(updater, update_slots_next_addr(slots))) {
        case FLASH_BUSY:
            return false;
        case FLASH_DONE:
            update_slots_note_erased(slots);
            break;
        case FLASH_FAILED:
            /* The function that writes the record erases it again. */
            return true;
        }
    }
    return true;
}

/* ---- The end of a commit. */

void updater_end(struct updater *updater, enum nvmf_firmware_result result)
{
    struct nvmf_firmware_commit commit = updater->commit;

    updater_enter(updater, UPDATER_IDLE);
    commit.slot = updater->slot;
    updater->config.done(updater->config.ctx, &commit, result);
}

void updater_refuse_image(struct updater *updater, enum update_verdict verdict)
{
    log_line(updater->config.log,
             "firmware: the image for slot %c %s; it is not used",
             slot_name(updater->slot), update_verdict_text(verdict));
    updater_end(updater, verdict == UPDATE_SECURITY ? NVMF_FIRMWARE_PROHIBITED
                                                    : NVMF_FIRMWARE_INVALID);
}

void updater_fail_flash(struct updater *updater)
{
    log_line(updater->config.log,
             "firmware: writing slot %c failed, so it holds no image; commit "
             "again",
             slot_name(updater->slot));
    updater_end(updater, NVMF_FIRMWARE_FAILED);
}

void updater_refuse_slot(struct updater *updater, const char *why)
{
    log_line(updater->config.log,
             "firmware: slot %c cannot be written, because %s; use the other "
             "slot",
             slot_name(updater->slot), why);
    updater_end(updater, NVMF_FIRMWARE_READ_ONLY);
}

/* ---- Steps. */

/* The image has run for long enough. */
static void end_trial(struct updater *updater)
{
    updater->is_trial_stuck = !update_slots_end_trial(&updater->slots);
    if (!updater->is_trial_stuck) {
        log_line(updater->config.log,
                 "firmware: the image in slot %c has run for %u s, so its "
                 "trial is over",
                 slot_name(updater->config.running), UPDATE_TRIAL_US / 1000000);
    }
}

static uint64_t step_trial(struct updater *updater, uint64_t now_us)
{
    if (!updater->has_started) {
        updater->has_started = true;
        updater->started_us = now_us;
    }
    if (!updater_is_on_trial(updater)) {
        return UINT64_MAX;
    }
    if (now_us < updater->started_us + UPDATE_TRIAL_US) {
        return updater->started_us + UPDATE_TRIAL_US;
    }
    if (updater->phase != UPDATER_IDLE && updater->phase != UPDATER_WAITING) {
        return now_us + PACE_US; /* The commit erases sectors itself. */
    }
    updater->is_trial_stuck = false; /* This is a new attempt. */
    if (!updater_prepare_record(updater)) {
        return now_us + ERASE_POLL_US;
    }
    end_trial(updater);
    /* If the flash has refused the record, try again later. */
    updater->started_us = now_us;
    return now_us + UPDATE_TRIAL_US;
}

uint64_t updater_step(struct updater *updater, uint64_t now_us)
{
    static void (*const steps[UPDATER_PHASES])(struct updater *updater) = {
        [UPDATER_STARTING] = update_step_starting,
        [UPDATER_WAITING] = update_step_waiting,
        [UPDATER_PROVING] = update_step_proving,
        [UPDATER_HASHING] = update_step_hashing,
        [UPDATER_PREPARING] = update_step_preparing,
        [UPDATER_ERASING] = update_step_erasing,
        [UPDATER_PROGRAMMING] = update_step_programming,
        [UPDATER_COMPARING] = update_step_comparing,
        [UPDATER_READING] = update_step_reading,
        [UPDATER_RECORDING] = update_step_recording,
    };
    uint64_t trial_us;

    if (updater->config.flash == NULL) {
        return UINT64_MAX;
    }
    trial_us = step_trial(updater, now_us);
    if (updater->phase == UPDATER_IDLE) {
        return trial_us;
    }
    steps[updater->phase](updater);
    if (updater->phase == UPDATER_IDLE || updater->phase == UPDATER_WAITING) {
        return trial_us;
    }
    return now_us + (updater->is_erasing ? ERASE_POLL_US : PACE_US);
}

/* ---- The seam of the target. */

/*
 * @param records  that the commit needs
 * @return false when the flash has to be spared, or when the host has used up
 * its share of the writes
 */
static bool may_write_flash(struct updater *updater,
                            const struct nvmf_firmware_commit *commit,
                            uint32_t records)
{
    const struct updater_config *config = &updater->config;
    uint64_t hours = config->power_on_hours != NULL
                         ? config->power_on_hours(config->ctx)
                         : 0;
    uint64_t left = update_slots_records_left(&updater->slots, hours);
    uint64_t more = records > 1 ? records - 1 : 0; /* than the first one */

    return write_shares_allow(&updater->records, commit->host, hours,
                              left - MIN(left, more)) &&
           (!commit->stores ||
            write_shares_allow(
                &updater->stores, commit->host, hours,
                update_slots_stores_left(&updater->slots, hours)));
}

static bool seam_commit(void *ctx, const struct nvmf_firmware_commit *commit)
{
    struct updater *updater = ctx;
    uint8_t slot =
        commit->slot != 0 ? commit->slot : update_slots_choose(&updater->slots);
    uint32_t records = update_slots_records_of(
        &updater->slots, slot, commit->stores, commit->activates);

    if (!may_write_flash(updater, commit, records)) {
        log_line(updater->config.log,
                 "firmware: a commit is refused to spare the flash, to which "
                 "%u images and %u states of the slots were written, or "
                 "because the host has used up its share; try again in an hour",
                 updater->slots.record.stores, updater->slots.sequence);
        return false;
    }
    write_shares_count(&updater->records, commit->host, records);
    if (commit->stores) {
        write_shares_count(&updater->stores, commit->host, 1);
    }
    updater->commit = *commit;
    updater->slot = slot;
    updater_enter(updater, UPDATER_STARTING);
    return true;
}

static void seam_describe(void *ctx, struct nvmf_firmware_now *now)
{
    const struct updater *updater = ctx;

    *now = (struct nvmf_firmware_now){
        .active = updater->config.running,
        .next = updater_next(updater),
        .is_first_read_only = updater->slots.record.is_a_read_only,
    };
    for (unsigned int i = 0; i < SLOT_COUNT; i++) {
        log_format(now->revision[i], sizeof(now->revision[i]), "%s",
                   updater->slots.slot[i].version);
    }
}

struct nvmf_firmware updater_seam(struct updater *updater)
{
    return (struct nvmf_firmware){
        .ctx = updater,
        .image = updater->config.flash != NULL ? updater->config.image : NULL,
        .commit = seam_commit,
        .describe = seam_describe,
    };
}
