/* SPDX-License-Identifier: BSD-2-Clause */
/* Where management requests and the console find the parts of the drive. */
#ifndef ESSD_APP_DRIVE_PARTS_H
#define ESSD_APP_DRIVE_PARTS_H

#include "firmware/app/drive.h"

/** Fill in drive->parts with what has started: drive_init() calls this before a
 * telemetry dump is made, and again when every part has started. */
void drive_fill_parts(struct drive *drive);

#endif
