/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The target's media seam (nvmeof/target/media.h) on the media engine's driver.
 *
 * One namespace, number 0, is the whole medium.  Left out: partitions of it.
 */
#ifndef ESSD_APP_MEDIA_SEAM_H
#define ESSD_APP_MEDIA_SEAM_H

#include "firmware/drivers/media.h"
#include "nvmeof/target/media.h"

/** The seam; `media` must be initialised and stay. */
struct nvmf_media media_seam(struct media *media);

/** The engine's status as the target's. */
enum media_status media_seam_status(enum media_cqe_status status);

#endif
