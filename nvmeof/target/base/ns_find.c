/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Finding a namespace, and its state.
 *
 * An NSID of 1 to NN is valid.  It is allocated when a namespace has it, and
 * active on the controllers to which that namespace is attached.
 * Spec: NVM Express Base 1.4 section 6.1.
 */
#include "nvmeof/target/base/base.h"

bool ns_is_valid(uint32_t nsid)
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

void ns_set_caution(struct nvmf_ns *ns, uint8_t caution, bool is_on)
{
    ns->caution = (uint8_t)((ns->caution & ~caution) | (is_on ? caution : 0));
}

/* The only writer of ns->state. */
void ns_enter(struct nvmf_ns *ns, enum ns_state next)
{
    ns->state = (uint8_t)next;
    ns_set_caution(ns, CAUTION_STATE, next != NS_READY);
}
