/* SPDX-License-Identifier: BSD-2-Clause */
#include "firmware/app/transfer_errors.h"

#include "lib/regfields.h"
#include "firmware/app/drive.h"
#include "hw-model/regs/rnic.h"

enum { QUIET_US = 60000000 /* between two lines on the console */ };

/* Whether a line may be shown now.  If so, no other one follows it soon. */
static bool may_show_line(const struct drive *drive, uint64_t *quiet_us)
{
    if (drive->now_us < *quiet_us) {
        return false;
    }
    *quiet_us = drive->now_us + QUIET_US;
    return true;
}

void transfer_errors_note_nand(void *ctx, const struct ftl_flash_op *op)
{
    struct drive *drive = ctx;
    const struct hw_error error = {
        .kind = HW_ERROR_NAND_TRANSFER,
        .time_us = drive->now_us,
        .address = hw_error_place(op),
        .info = drive->nand.seam.transfer_errors,
    };

    hw_log_note(&drive->hw_log, &error, drive->now_us);
    if (may_show_line(drive, &drive->transfer_errors.nand_quiet_us)) {
        log_line(drive->log,
                 "nand: data of die %u, block %u had a parity error on its way "
                 "between DRAM and flash; %u such errors since the start",
                 op->die, op->block, drive->nand.seam.transfer_errors);
    }
}

uint32_t transfer_errors_of_rnic(const struct drive *drive)
{
    return (uint32_t)rnic_counter_read(&drive->net.verbs,
                                       RNIC_COUNT_PARITY_ERRORS);
}

/* The RNIC does not repeat a transfer, and the connection is lost. */
void transfer_errors_note_rnic(void *ctx, uint32_t qpn, bool is_to_dram)
{
    struct drive *drive = ctx;
    uint32_t errors = transfer_errors_of_rnic(drive);
    const struct hw_error error = {
        .kind = HW_ERROR_RNIC_TRANSFER,
        .is_fatal = true,
        .time_us = drive->now_us,
        .address = (uint64_t)(is_to_dram ? RNIC_TRANSFER_TO_DRAM
                                         : RNIC_TRANSFER_FROM_DRAM)
                       << 32 |
                   qpn,
        .info = errors,
    };

    hw_log_note(&drive->hw_log, &error, drive->now_us);
    if (may_show_line(drive, &drive->transfer_errors.rnic_quiet_us)) {
        log_line(drive->log,
                 "rnic: data of queue pair 0x%x had a parity error on its way "
                 "%s; its connection ends; %u such errors since the start",
                 qpn, is_to_dram ? "to DRAM" : "from DRAM", errors);
    }
}
