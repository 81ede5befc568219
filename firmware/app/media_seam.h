/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The target's media seam (nvmeof/target/media.h), served by the media engine's
 * driver.
 *
 * The whole medium is one namespace, with handle 0.  Partitions are not
 * implemented.
 */
#ifndef ESSD_APP_MEDIA_SEAM_H
#define ESSD_APP_MEDIA_SEAM_H

#include "firmware/drivers/media.h"
#include "nvmeof/target/media.h"

/**
 * Return the seam.  `media` must be initialised and must outlive the target.
 */
struct nvmf_media media_seam(struct media *media);

/** Convert a status of the media engine to the target's. */
enum media_status media_seam_status(enum media_cqe_status status);

#endif
