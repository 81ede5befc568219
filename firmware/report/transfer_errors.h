/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Parity errors of data on its way between the DRAM and a device.  Each one is
 * in the log of hardware errors; the console shows one of each device a minute.
 * Reference: docs/hardware/flash.md, "Hardware errors"
 */
#ifndef ESSD_REPORT_TRANSFER_ERRORS_H
#define ESSD_REPORT_TRANSFER_ERRORS_H

#include "firmware/hal/log.h"
#include "firmware/usage/hw_log.h"
#include "firmware/medium/nand_seam.h"

struct transfer_errors {
    struct log *log;
    struct hw_log *hw_log;
    /* Until these times, no such error is shown on the console. */
    uint64_t nand_quiet_us;
    uint64_t rnic_quiet_us;
};

/**
 * The data of an operation had a parity error between DRAM and flash.
 * @param count  the number of such errors since the start
 */
void transfer_errors_note_nand(struct transfer_errors *errors,
                               const struct ftl_flash_op *op, uint32_t count,
                               uint64_t now_us);

/**
 * Data of a connection had a parity error between RNIC and DRAM, and the
 * connection ends.
 * @param count  the number of such errors since the start
 */
void transfer_errors_note_rnic(struct transfer_errors *errors, uint32_t qpn,
                               bool is_to_dram, uint32_t count,
                               uint64_t now_us);

#endif
