/* SPDX-License-Identifier: BSD-2-Clause */
#include "firmware/app/drive_stages.h"

/* What the drive does by itself uses the medium as the target does. */
bool drive_stages_start(struct drive *drive, const struct drive_config *config)
{
    const struct stages_parts parts = {
        .rdma = drive->rdma,
        .verbs = &drive->net.verbs,
        .target = drive->target,
        .volume = drive->volume,
        .nand = &drive->nand,
    };

    if (!config->has_stages || drive->nand.ftl == NULL) {
        return true;
    }
    drive->stages = stages_make(&parts, config->dram);
    drive->medium.submit = stages_submit_own;
    drive->medium.ctx = drive->stages;
    return drive->stages != NULL;
}

struct nvmf_media drive_stages_media(struct drive *drive)
{
    struct nvmf_media media;

    if (drive->nand.ftl == NULL) {
        return media_seam(&drive->media_seam);
    }
    media = nand_medium_seam(&drive->nand, drive->volume);
    if (drive->stages != NULL) {
        stages_set_media(drive->stages, &media);
    }
    return media;
}

const struct rdma_relay *drive_stages_relay(const struct drive *drive)
{
    return drive->stages != NULL ? &drive->stages->relay : NULL;
}
