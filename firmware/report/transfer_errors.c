/* SPDX-License-Identifier: BSD-2-Clause */
#include "firmware/report/transfer_errors.h"

#include "firmware/report/hw_errors.h"
#include "hw-model/regs/rnic.h"
#include "lib/regfields.h"

enum { QUIET_US = 60000000 /* between two lines on the console */ };

/* Whether a line may be shown now.  If so, no other one follows it soon. */
static bool may_show_line(uint64_t *quiet_us, uint64_t now_us)
{
    if (now_us < *quiet_us) {
        return false;
    }
    *quiet_us = now_us + QUIET_US;
    return true;
}

void transfer_errors_note_nand(struct transfer_errors *errors,
                               const struct ftl_flash_op *op, uint32_t count,
                               uint64_t now_us)
{
    const struct hw_error error = {
        .kind = HW_ERROR_NAND_TRANSFER,
        .time_us = now_us,
        .address = hw_error_place(op),
        .info = count,
    };

    hw_log_note(errors->hw_log, &error, now_us);
    if (may_show_line(&errors->nand_quiet_us, now_us)) {
        log_line(errors->log,
                 "nand: data of die %u, block %u had a parity error on its way "
                 "between DRAM and flash; %u such errors since the start",
                 op->die, op->block, count);
    }
}

/* The RNIC does not repeat a transfer, and the connection is lost. */
void transfer_errors_note_rnic(struct transfer_errors *errors, uint32_t qpn,
                               bool is_to_dram, uint32_t count, uint64_t now_us)
{
    const struct hw_error error = {
        .kind = HW_ERROR_RNIC_TRANSFER,
        .is_fatal = true,
        .time_us = now_us,
        .address = (uint64_t)(is_to_dram ? RNIC_TRANSFER_TO_DRAM
                                         : RNIC_TRANSFER_FROM_DRAM)
                       << 32 |
                   qpn,
        .info = count,
    };

    hw_log_note(errors->hw_log, &error, now_us);
    if (may_show_line(&errors->rnic_quiet_us, now_us)) {
        log_line(errors->log,
                 "rnic: data of queue pair 0x%x had a parity error on its way "
                 "%s; its connection ends; %u such errors since the start",
                 qpn, is_to_dram ? "to DRAM" : "from DRAM", count);
    }
}
