/* SPDX-License-Identifier: BSD-2-Clause */
#include "nvmeof/target/plain.h"

#include "nvmeof/target/request/request.h"
#include "nvmeof/wire/opcode.h"

enum { FUSE_MASK = 0x3 };

/* These questions are asked for each message between harts, and have no
 * branches. */

static inline bool is_plain_queue(const struct nvmf_qpair *qpair)
{
    return (qpair->state == QPAIR_LIVE) & (qpair->qid != 0) &
           (qpair->fused == FUSED_NONE);
}

static inline bool is_plain_opcode(uint8_t opcode)
{
    return (opcode == NVM_READ) | (opcode == NVM_WRITE);
}

bool nvmf_capsule_is_plain(const struct nvmf_target *target, uint16_t qpair,
                           const uint8_t *sqe)
{
    bool is_io = is_plain_opcode(sqe[SQE_OPCODE]);
    bool is_fused = (sqe[SQE_FLAGS] & FUSE_MASK) != 0;
    bool is_live = is_plain_queue(&target->qpair[qpair]);

    return is_io & is_live & !is_fused;
}

static inline bool is_plain_request(const struct nvmf_target *target,
                                    const struct nvmf_request *req)
{
    bool is_io = is_plain_opcode(req->sqe.opcode);
    bool is_live = is_plain_queue(&target->qpair[req->qpair]);

    return is_io & is_live;
}

bool nvmf_transfer_is_plain(const struct nvmf_target *target,
                            const struct nvmf_transfer *transfer)
{
    return is_plain_request(
        target, container_of(transfer, const struct nvmf_request, transfer));
}

bool nvmf_media_is_plain(const struct nvmf_target *target,
                         const struct media_owner *owner)
{
    return is_plain_request(
        target, container_of(owner, const struct nvmf_request, media_owner));
}

void nvmf_use_media(struct nvmf_target *target, const struct nvmf_media *media)
{
    target->media = *media;
}
