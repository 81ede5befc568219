/* SPDX-License-Identifier: BSD-2-Clause */
/* Starts the medium, and what is between it and the target. */
#ifndef ESSD_APP_DRIVE_MEDIUM_H
#define ESSD_APP_DRIVE_MEDIUM_H

#include "firmware/app/drive.h"

/** The medium is the NAND array, if there is one, or that of the engine. */
MUST_USE struct init_report drive_medium_start(
    struct drive *drive, const struct drive_config *config);

/** Give the target the health of the NAND array.  Only with an array. */
void drive_nand_health_start(struct drive *drive, struct nvmf_config *target);

void drive_volume_start(struct drive *drive, const struct drive_config *config);

void drive_reservations_start(struct drive *drive,
                              const struct drive_config *config);

#endif
