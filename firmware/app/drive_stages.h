/* SPDX-License-Identifier: BSD-2-Clause */
/* The seams between the drive's parts, with or without stages (stages.h). */
#ifndef ESSD_APP_DRIVE_STAGES_H
#define ESSD_APP_DRIVE_STAGES_H

#include "firmware/app/drive.h"

/** Make the stages, if there are any. @return false: there is no memory */
MUST_USE bool drive_stages_start(struct drive *drive,
                                 const struct drive_config *config);

/** The target's media. */
struct nvmf_media drive_stages_media(struct drive *drive);

/** rdma_transport_config.relay */
const struct rdma_relay *drive_stages_relay(const struct drive *drive);

#endif
