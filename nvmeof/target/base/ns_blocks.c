/* SPDX-License-Identifier: BSD-2-Clause */
#include "nvmeof/target/inside.h"

#include "nvmeof/target/base/base.h"

bool nvmf_target_ns_blocks(const struct nvmf_target *target, uint32_t nsid,
                           uint16_t qpair, struct nvmf_ns_blocks *blocks)
{
    uint8_t ctrl = target->qpair[qpair].ctrl;
    const struct nvmf_ns *ns;

    if (!ns_is_valid(nsid)) {
        return false;
    }
    ns = &target->ns[nsid - 1];
    if (ns->state == NS_FREE || ns->state == NS_DELETING) {
        return false;
    }
    *blocks = (struct nvmf_ns_blocks){
        .size_blocks = ns->geometry.size_blocks,
        .block_shift = ns->geometry.block_shift,
        .atomic_shift = ns->geometry.atomic_shift,
        .has_metadata = ns->geometry.has_metadata,
        .has_zones = ns->geometry.zone_blocks != 0,
        .is_private = ns->volume.is_private,
        .is_attached =
            ctrl != NO_CTRL && ns_is_active(&target->ctrl[ctrl], nsid),
    };
    return true;
}
