/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Plain commands: reads and writes of an I/O queue that is connected, and that
 * are not fused.  The target handles them without calling anything but its
 * transport, its media, its buffers, and what counts errors; so it may handle
 * them while other harts work at other stages (firmware/stages/stages.h).
 */
#ifndef ESSD_NVMEOF_TARGET_PLAIN_H
#define ESSD_NVMEOF_TARGET_PLAIN_H

#include "nvmeof/target/target.h"

/** Whether nvmf_capsule() would begin a plain command. */
bool nvmf_capsule_is_plain(const struct nvmf_target *target, uint16_t qpair,
                           const uint8_t *sqe);

/** Whether a command that the target has is plain. */
bool nvmf_transfer_is_plain(const struct nvmf_target *target,
                            const struct nvmf_transfer *transfer);

/** The same for the command that owns an operation at the target's media. */
bool nvmf_media_is_plain(const struct nvmf_target *target,
                         const struct media_owner *owner);

/** Use another way to the same media.  No command may be in progress. */
void nvmf_use_media(struct nvmf_target *target, const struct nvmf_media *media);

#endif
