/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Parity errors of data on its way between the DRAM and a device.  Each one is
 * in the log of hardware errors.
 * Reference: docs/hardware/flash.md, "Hardware errors"
 */
#ifndef ESSD_APP_TRANSFER_ERRORS_H
#define ESSD_APP_TRANSFER_ERRORS_H

#include <stdbool.h>
#include <stdint.h>

#include "storage/ftl/ftl_flash.h"

struct drive;

/* Until these times, no such error is shown on the console. */
struct transfer_errors {
    uint64_t nand_quiet_us;
    uint64_t rnic_quiet_us;
};

/** The data of an operation had a parity error between DRAM and flash.  The
 * function for nand_medium_config.transfer_failed. */
void transfer_errors_note_nand(void *drive, const struct ftl_flash_op *op);

/** Data of a connection had a parity error between RNIC and DRAM, and the
 * connection ends.  The function for drive_net_config.parity_error. */
void transfer_errors_note_rnic(void *drive, uint32_t qpn, bool is_to_dram);

/** The number of parity errors between RNIC and DRAM since the start. */
uint32_t transfer_errors_of_rnic(const struct drive *drive);

#endif
