/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Namespaces: finding one, using one, and flushing all.
 *
 * An NSID of 1 to NN is valid.  It is allocated when a namespace has it, and
 * active on the controllers to which that namespace is attached.
 * Spec: NVM Express Base 1.4 section 6.1.
 */
#include "nvmeof/target/internal.h"

static bool ns_is_valid(uint32_t nsid)
{
    return nsid != 0 && nsid <= NVMF_MAX_NAMESPACES;
}

/* Whether a namespace is attached to this controller; nsid is valid. */
bool ns_is_active(const struct nvmf_ctrl *ctrl, uint32_t nsid)
{
    uint32_t i = nsid - 1;

    return ctrl->active_ns[i / 32] >> i % 32 & 1;
}

/* @return NULL for an NSID that is invalid or that no namespace has */
struct nvmf_ns *ns_find_allocated(struct nvmf_target *target, uint32_t nsid)
{
    return ns_is_valid(nsid) && target->ns[nsid - 1].state != NS_FREE
               ? &target->ns[nsid - 1]
               : NULL;
}

/* @return NULL for an NSID that is invalid or inactive on this controller */
struct nvmf_ns *ns_find_active(struct nvmf_target *target,
                               const struct nvmf_ctrl *ctrl, uint32_t nsid)
{
    return ns_is_valid(nsid) && ns_is_active(ctrl, nsid) ? &target->ns[nsid - 1]
                                                         : NULL;
}

/*
 * Check that a command's NSID names an active namespace, which the command uses
 * from now on until ns_release().
 */
uint16_t ns_check(struct nvmf_target *target, struct nvmf_request *req)
{
    uint32_t nsid = req->sqe.nsid;

    if (nsid == 0 || nsid > NVMF_MAX_NAMESPACES) {
        return refuse_field(req, NVME_SC_INVALID_NS, SQE_NSID, 0);
    }
    if (!ns_is_active(request_ctrl(target, req), nsid)) {
        return refuse_field(req, NVME_SC_INVALID_FIELD, SQE_NSID, 0);
    }
    if (__builtin_expect(target->ns[nsid - 1].state != NS_READY, 0)) {
        return NVME_SC_FORMAT_IN_PROGRESS; /* the host may try again */
    }
    req->ns = &target->ns[nsid - 1];
    req->ns->users++;
    return NVME_SC_SUCCESS;
}

/* Flush all namespaces of the drive. */
uint16_t ns_flush_all(struct nvmf_target *target, struct nvmf_request *req)
{
    struct media_io io = {.op = MEDIA_FLUSH, .ns = MEDIA_NS_ALL};

    return request_media(target, req, &io);
}

/* Add a namespace to a controller's Changed Namespace List, and report it. */
void ns_tell_changed(struct nvmf_target *target, struct nvmf_ctrl *ctrl,
                     uint32_t nsid)
{
    uint32_t i = nsid - 1;

    if (ctrl->state == CTRL_READY && !ctrl->is_discovery) {
        ctrl->changed_ns[i / 32] |= BIT(i % 32);
        event_raise(target, ctrl, CTRL_EVENT_NS_CHANGED);
    }
}
