/* SPDX-License-Identifier: BSD-2-Clause */
#include "firmware/app/firmware_update.h"

#include "firmware/app/drive.h"
#include "firmware/hal/time.h"

enum {
    IMAGE_ALIGN = 4096,
    /* A host that has reset the subsystem gets so long to leave; the target
     * itself gives it 5 s. */
    RESTART_LIMIT_US = 6 * 1000 * 1000,
    RESTART_POLL_US = 10 * 1000,
    STATUS_INVALID_IMAGE = 0x107, /* NVM Express Base 2.0 section 5.11 */
};

/* Commands of hosts wait for one step at most, so its length is logged. */
static void end_commit(void *ctx, const struct nvmf_firmware_commit *commit,
                       enum nvmf_firmware_result result)
{
    struct drive *drive = ctx;

    log_line(drive->log, "firmware: the longest step of the commit took %lu us",
             (unsigned long)drive->firmware.longest_us);
    drive->firmware.longest_us = 0;
    nvmf_firmware_committed(((struct drive *)ctx)->target, commit, result);
}

void firmware_update_start(struct drive *drive,
                           const struct drive_config *config)
{
    struct firmware_update *update = &drive->firmware;
    struct updater_config updater = {
        .log = config->log,
        .flash = config->firmware.flash,
        .running = config->active_slot,
        .is_unplanned = config->firmware.is_unplanned,
        .dram_addr = config->firmware.dram_addr,
        .dram_bytes = config->firmware.dram_bytes,
        .key = config->firmware.key,
        .power_on_hours = drive_power_on_hours,
        .done = end_commit,
        .ctx = drive,
    };

    for (unsigned int i = 0; i < SLOT_COUNT; i++) {
        updater.is_bad[i] = config->firmware.is_bad[i];
    }
    if (updater.flash != NULL) {
        updater.image =
            dram_reserve(config->dram, NVMF_FIRMWARE_MAX, IMAGE_ALIGN);
        if (updater.image == NULL) {
            log_line(config->log,
                     "firmware: the DRAM is too small for an update; hosts "
                     "cannot download firmware");
        }
    }
    update->restart = config->firmware.restart;
    update->ctx = config->firmware.ctx;
    updater_init(&update->updater, &updater);
}

void firmware_update_report(struct drive *drive)
{
    struct updater *updater = &drive->firmware.updater;
    enum slot_failure failure;
    uint8_t slot = updater_given_up(updater, &failure);

    if (slot == 0) {
        return;
    }
    if (failure == SLOT_FAILURE_TRIAL) {
        nvmf_target_log_error(drive->target, STATUS_INVALID_IMAGE, 0, slot);
    }
    nvmf_firmware_given_up(drive->target, slot);
    updater_reported(updater);
}

void firmware_update_subsystem_reset(void *ctx)
{
    struct drive *drive = ctx;
    struct firmware_update *update = &drive->firmware;
    uint8_t next = updater_next(&update->updater);

    if (next != 0 && update->restart != NULL && update->restart_us == 0) {
        log_line(drive->log,
                 "drive: a host has reset the subsystem; the drive restarts "
                 "with the firmware of slot %u",
                 next);
        update->restart_us = drive->now_us + RESTART_LIMIT_US;
    }
}

/*
 * Restart when all hosts have left, so that all of them get their responses,
 * and when no commit is in progress.  After RESTART_LIMIT_US the drive restarts
 * in any case; a restart in the middle of a commit does no harm.
 */
static void restart_if_due(struct drive *drive, struct loop_step *step)
{
    struct firmware_update *update = &drive->firmware;
    uint16_t controllers, qpairs;

    nvmf_target_stats(drive->target, &controllers, &qpairs);
    if ((controllers != 0 || updater_is_busy(&update->updater)) &&
        step->now_us < update->restart_us) {
        loop_call_at(step, step->now_us + RESTART_POLL_US);
        return;
    }
    drive_stop(drive);
    /* tools/essd/supervisor/part.py looks for this line. */
    log_line(drive->log, "drive: restarting with other firmware");
    update->restart(update->ctx);
}

enum loop_work firmware_update_step(void *ctx, struct loop_step *step)
{
    struct drive *drive = ctx;
    uint64_t start_us = hal_now_us();

    loop_call_at(step, updater_step(&drive->firmware.updater, step->now_us));
    if (updater_is_busy(&drive->firmware.updater)) {
        uint64_t taken_us = hal_now_us() - start_us;

        drive->firmware.longest_us = MAX(drive->firmware.longest_us, taken_us);
    }
    if (__builtin_expect(drive->firmware.restart_us != 0, 0)) {
        restart_if_due(drive, step);
    }
    return LOOP_IDLE;
}
