/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The target's media seam (storage/block/media.h), served by the media engine's
 * driver.  The volume says where the blocks of a namespace are on the medium.
 */
#ifndef ESSD_MEDIUM_MEDIA_SEAM_H
#define ESSD_MEDIUM_MEDIA_SEAM_H

#include "firmware/drivers/media.h"
#include "storage/volume/volume.h"
#include "storage/block/media.h"

struct media_seam {
    struct media *media;
    struct volume *volume;
};

/**
 * Return the seam.  Media and volume must be initialised, and with *seam they
 * must outlive the target.
 */
struct nvmf_media media_seam(struct media_seam *seam);

/**
 * Start an operation on the medium as a whole, in blocks of 512 bytes.  The
 * function for volume_config.submit.
 */
MUST_USE bool media_seam_submit(void *media, const struct media_io *io);

/** An operation of the media engine has ended: the function for media_poll().
 * Its cookie is the address of the operation's owner. */
void media_seam_done(void *ctx, uint64_t cookie, enum media_cqe_status status);

#endif
