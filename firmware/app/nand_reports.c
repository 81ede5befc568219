/* SPDX-License-Identifier: BSD-2-Clause */
/* What the flash and the power supply report to the drive. */
#include "firmware/app/drive_io.h"
#include "hw-model/regs/rnic.h"
#include "lib/regfields.h"
#include "nvmeof/wire/log.h"

void drive_update_reliability(struct drive *drive)
{
    struct nvmf_health health = *nvmf_target_health(drive->target);

    health.critical_warning &= (uint8_t)~SMART_WARN_RELIABILITY;
    if (drive->nand_has_failed || drive->nand_storage_is_failing ||
        sensors_have_failed(&drive->peripherals.sensors)) {
        health.critical_warning |= SMART_WARN_RELIABILITY;
    }
    nvmf_target_set_health(drive->target, &health);
}

static void report_nand_failure(void *ctx)
{
    struct drive *drive = ctx;

    drive->nand_has_failed = true;
    drive_update_reliability(drive);
}

static void report_storage(void *ctx, bool is_failing)
{
    struct drive *drive = ctx;

    drive->nand_storage_is_failing = is_failing;
    drive_update_reliability(drive);
}

void drive_forget_nand_failure(struct drive *drive)
{
    if (drive->nand.ftl != NULL) {
        drive->nand_has_failed = false;
        drive_update_reliability(drive);
    }
}

static void report_nand_op(void *ctx, const struct ftl_flash_op *op,
                           enum nand_seam_failure failure)
{
    struct drive *drive = ctx;
    const struct hw_errors_op failed = {
        .op = op,
        .failure = failure,
        .is_mounting = ftl_state(drive->nand.ftl) == FTL_MOUNTING,
        .transfer_errors = drive->nand.seam.transfer_errors,
    };

    hw_errors_note_op(&drive->hw_errors, &failed, drive->now_us);
}

static void report_nand_die(void *ctx, uint32_t die)
{
    struct drive *drive = ctx;

    hw_errors_note_die(&drive->hw_errors, die, drive->now_us);
}

static void report_nand_read_only(void *ctx)
{
    struct drive *drive = ctx;
    struct nvmf_health health = *nvmf_target_health(drive->target);

    hw_errors_note_read_only(&drive->hw_errors, drive->now_us);
    health.critical_warning |= SMART_WARN_READ_ONLY;
    nvmf_target_set_health(drive->target, &health);
}

static void report_capacitors(void *ctx)
{
    struct drive *drive = ctx;
    struct nvmf_health health = *nvmf_target_health(drive->target);

    hw_errors_note_capacitors(&drive->hw_errors, drive->now_us);
    health.critical_warning |= SMART_WARN_VOLATILE_MEMORY;
    nvmf_target_set_health(drive->target, &health);
}

static void report_transfer(void *ctx, const struct ftl_flash_op *op)
{
    struct drive *drive = ctx;

    transfer_errors_note_nand(&drive->transfer_errors, op,
                              drive->nand.seam.transfer_errors, drive->now_us);
}

static void report_rule(void *ctx, const struct ftl_flash_op *op, uint8_t rule)
{
    struct drive *drive = ctx;

    nand_rules_note(&drive->nand_rules, &drive->nand.seam, op, rule,
                    drive->now_us);
}

void drive_report_rnic_transfer(void *ctx, uint32_t qpn, bool is_to_dram)
{
    struct drive *drive = ctx;

    transfer_errors_note_rnic(&drive->transfer_errors, qpn, is_to_dram,
                              (uint32_t)rnic_counter_read(
                                  &drive->net.verbs, RNIC_COUNT_PARITY_ERRORS),
                              drive->now_us);
}

/* ---- Power. */

static void save_buffer(void *ctx, uint64_t now_us)
{
    struct drive *drive = ctx;

    if (drive->nand.ftl != NULL) {
        nand_medium_power_fails(&drive->nand, now_us);
    }
}

void drive_start_power(struct drive *drive, const struct drive_config *config)
{
    const struct power_config power = {
        .log = config->log,
        .is_failing = config->power.is_failing,
        .saved = config->power.saved,
        .ctx = config->power.ctx,
        .save = save_buffer,
        .save_ctx = drive,
    };

    power_init(&drive->power, &power);
}

static void check_power(void *ctx, uint64_t now_us)
{
    (void)power_check(&((struct drive *)ctx)->power, now_us);
}

static void report_power_saved(void *ctx)
{
    power_end(&((struct drive *)ctx)->power);
}

/* ---- Wear. */

void drive_report_nand_health(struct drive *drive, struct loop_step *step)
{
    uint64_t deadline_us = LOOP_NO_DEADLINE;

    if (nand_health_has_changed(&drive->nand_health, step->now_us,
                                &deadline_us)) {
        struct nvmf_health health = *nvmf_target_health(drive->target);

        nand_health_fill(&drive->nand_health, &health);
        nvmf_target_set_health(drive->target, &health);
    }
    loop_call_at(step, deadline_us);
}

void drive_take_nand_reports(struct nand_medium_config *config)
{
    config->op_failed = report_nand_op;
    config->transfer_failed = report_transfer;
    config->rule_broken = report_rule;
    config->die_failed = report_nand_die;
    config->failed = report_nand_failure;
    config->buffer_lost = report_nand_failure;
    config->storage_failing = report_storage;
    config->read_only = report_nand_read_only;
    config->capacitors_failed = report_capacitors;
    config->check_power = check_power;
    config->saved = report_power_saved;
}
