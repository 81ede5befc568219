/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Namespaces: finding one, and flushing one or all.
 * Spec: NVM Express Base 1.4 section 6.1.
 */
#include "nvmeof/target/internal.h"

/* @return NULL for a namespace that does not exist or is not active */
const struct nvmf_ns *ns_find(const struct nvmf_target *target, uint32_t nsid)
{
    if (nsid == 0 || nsid > NVMF_MAX_NAMESPACES ||
        !target->ns[nsid - 1].is_active) {
        return NULL;
    }
    return &target->ns[nsid - 1];
}

/* The status for a command whose NSID must name an active namespace. */
uint16_t ns_check(const struct nvmf_target *target, struct nvmf_request *req)
{
    uint32_t nsid = req->sqe.nsid;

    if (nsid == 0 || nsid > NVMF_MAX_NAMESPACES) {
        return refuse_field(req, NVME_SC_INVALID_NS, SQE_NSID, 0);
    }
    if (!target->ns[nsid - 1].is_active) {
        return refuse_field(req, NVME_SC_INVALID_FIELD, SQE_NSID, 0);
    }
    return NVME_SC_SUCCESS;
}

/* Number of flushes for all active namespaces: one for each. */
uint16_t ns_flush_steps(const struct nvmf_target *target)
{
    uint16_t steps = 0;

    for (uint32_t i = 0; i < NVMF_MAX_NAMESPACES; i++) {
        steps = (uint16_t)(steps + target->ns[i].is_active);
    }
    return steps;
}

/* Flush the next active namespace. */
uint16_t ns_flush_step(struct nvmf_target *target, struct nvmf_request *req)
{
    uint16_t turn = req->progress;
    struct media_io io = {.op = MEDIA_FLUSH};

    for (uint32_t i = 0; i < NVMF_MAX_NAMESPACES; i++) {
        if (target->ns[i].is_active && turn-- == 0) {
            io.ns = target->ns[i].config.media_ns;
            return request_media(target, req, &io);
        }
    }
    return NVME_SC_SUCCESS;
}
