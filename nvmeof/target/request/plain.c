/* SPDX-License-Identifier: BSD-2-Clause */
#include "nvmeof/target/plain.h"

#include "nvmeof/target/request/request.h"
#include "nvmeof/wire/opcode.h"

enum { FUSE_MASK = 0x3 };

static bool is_plain_queue(const struct nvmf_qpair *qpair)
{
    return qpair->state == QPAIR_LIVE && qpair->qid != 0 &&
           qpair->fused == FUSED_NONE;
}

bool nvmf_capsule_is_plain(const struct nvmf_target *target, uint16_t qpair,
                           const uint8_t *sqe)
{
    uint8_t opcode = sqe[SQE_OPCODE];

    return (opcode == NVM_READ || opcode == NVM_WRITE) &&
           (sqe[SQE_FLAGS] & FUSE_MASK) == 0 &&
           is_plain_queue(&target->qpair[qpair]);
}

static bool is_plain_request(const struct nvmf_target *target,
                             const struct nvmf_request *req)
{
    return (req->sqe.opcode == NVM_READ || req->sqe.opcode == NVM_WRITE) &&
           is_plain_queue(&target->qpair[req->qpair]);
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
