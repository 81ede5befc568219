/* SPDX-License-Identifier: BSD-2-Clause */
/* What medium, power supply and RNIC tell the drive, and the drive them. */
#ifndef ESSD_APP_DRIVE_IO_H
#define ESSD_APP_DRIVE_IO_H

#include "firmware/app/drive.h"

/** A flash that was wiped can be relied upon again. */
void drive_forget_nand_failure(struct drive *drive);

/** Set the functions that the flash calls when something has happened.  Their
 * context is the drive: nand_medium_config.ctx. */
void drive_take_nand_reports(struct nand_medium_config *config);

/** Data of a connection had a parity error between RNIC and DRAM.  The function
 * for drive_net_config.parity_error. */
void drive_report_rnic_transfer(void *drive, uint32_t qpn, bool is_to_dram);

/** Watch the power from now on. */
void drive_start_power(struct drive *drive, const struct drive_config *config);

/** Tell the target of the NAND flash's wear and spare blocks when they have
 * changed. */
void drive_report_nand_health(struct drive *drive, struct loop_step *step);

#endif
