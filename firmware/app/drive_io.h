/* SPDX-License-Identifier: BSD-2-Clause */
/* What the medium tells the drive, and the drive the medium. */
#ifndef ESSD_APP_DRIVE_IO_H
#define ESSD_APP_DRIVE_IO_H

#include "firmware/app/drive.h"

/** A flash that was wiped can be relied upon again. */
void drive_forget_nand_failure(struct drive *drive);

/** Set the functions that the flash calls when something has happened.  Their
 * context is the drive: nand_medium_config.ctx. */
void drive_take_nand_reports(struct nand_medium_config *config);

/** If the power fails, begin to save the write buffer.
 * @return true in the one call that begins it */
bool drive_check_power(struct drive *drive, uint64_t now_us);

/** Tell the target of the NAND flash's wear and spare blocks when they have
 * changed. */
void drive_report_nand_health(struct drive *drive, struct loop_step *step);

#endif
