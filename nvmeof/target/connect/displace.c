/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which queue pair without proof has to go for another one, as a transport
 * asks: see share.c.
 */
#include "nvmeof/target/connect/connect.h"

#include <string.h>

enum {
    FEW = 4, /* of one address */
    YOUNG_US = 1000000,
};

void nvmf_qpair_confirm(struct nvmf_target *target, uint16_t index)
{
    const struct nvmf_qpair *qpair = &target->qpair[index];

    if (qpair->state == QPAIR_CONNECTING && qpair->ctrl == NO_CTRL) {
        share_enter(target, index);
    }
}

/* Whether a queue pair is of an address that comes before this one. */
static bool goes_before(const struct nvmf_target *target,
                        const struct nvmf_qpair *qpair, const uint8_t *host)
{
    bool is_old = target->now_us - qpair->listed_us >= YOUNG_US;

    return qpair->of_address >= share_count(target, host) &&
           (is_old || qpair->of_address > FEW);
}

/* Note that a queue pair has to go.  @return its transport ends it now */
static bool displace_queue(struct nvmf_target *target, uint16_t index,
                           const struct nvmf_transport *transport)
{
    if (index == NO_QPAIR || target->qpair[index].transport != transport) {
        return false;
    }
    target->shares.displaced++;
    auth_displace(target, index);
    return true;
}

bool nvmf_qpair_displace(struct nvmf_target *target,
                         const struct nvmf_qpair_params *params,
                         uint64_t now_us, uint16_t *index)
{
    target->now_us = now_us;
    *index = share_choose(target, NULL, params->host);
    return *index != NO_QPAIR &&
           goes_before(target, &target->qpair[*index], params->host) &&
           displace_queue(target, *index, params->transport);
}

bool nvmf_qpair_displace_address(struct nvmf_target *target,
                                 const struct nvmf_qpair_params *params,
                                 uint8_t *address, uint16_t *index)
{
    *index = target->shares.first;
    if (target->shares.addresses < NVMF_UNPROVEN_ADDRESSES ||
        share_count(target, params->host) != 0) {
        return false;
    }
    if (share_count(target, address) == 0) {
        memcpy(address, target->qpair[*index].host,
               sizeof(target->qpair[*index].host));
    }
    while (!share_is_address(&target->qpair[*index], address)) {
        *index = target->qpair[*index].next_listed;
    }
    return displace_queue(target, *index, params->transport);
}
