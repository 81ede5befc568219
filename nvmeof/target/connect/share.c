/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Shares of addresses: queue pairs whose hosts have proven no identity keep
 * nobody out.
 *
 * Such queue pairs are in one list: those that wait for Connect, those that
 * wait for the proof, and those of discovery controllers (stage.c).  A peer
 * that may have forged its address is not in it; it comes into the list when it
 * has shown that it receives there.  When something runs out that such queue
 * pairs take, the address that has most of them loses its oldest one.  So an
 * address displaces nothing but its own, until it has no more than others.
 *
 * While an address has few of them, those of the last second stay: a host that
 * is connecting right now comes to its end.  With as many addresses as places,
 * the oldest of all goes; a host is displaced only if it takes longer to prove
 * its identity than the others need to take all places.
 *
 * The count of an address is kept beside each of its queue pairs, so that each
 * change and each choice is one walk over the list.
 */
#include "nvmeof/target/internal.h"

#include <string.h>

enum {
    FEW = 4, /* of one address */
    YOUNG_US = 1000000,
};

static bool is_same_address(const struct nvmf_qpair *a, const uint8_t *host)
{
    return memcmp(a->host, host, sizeof(a->host)) == 0;
}

/* Add to the count of all listed queue pairs of an address.  @return how many
 * there are */
static uint16_t change_count(struct nvmf_target *target, const uint8_t *host,
                             int16_t by)
{
    uint16_t found = 0;

    for (uint16_t i = target->shares.first; i != NO_QPAIR;
         i = target->qpair[i].next_listed) {
        struct nvmf_qpair *qpair = &target->qpair[i];

        if (is_same_address(qpair, host)) {
            qpair->of_address = (uint16_t)(qpair->of_address + by);
            found++;
        }
    }
    return found;
}

void share_enter(struct nvmf_target *target, uint16_t index)
{
    struct nvmf_shares *shares = &target->shares;
    struct nvmf_qpair *qpair = &target->qpair[index];

    if (qpair->is_listed) {
        return;
    }
    qpair->is_listed = true;
    qpair->listed_us = target->now_us;
    qpair->of_address = (uint16_t)(change_count(target, qpair->host, 1) + 1);
    shares->addresses =
        (uint16_t)(shares->addresses + (qpair->of_address == 1));
    qpair->next_listed = NO_QPAIR;
    qpair->prev_listed = shares->last;
    if (shares->last == NO_QPAIR) {
        shares->first = index;
    } else {
        target->qpair[shares->last].next_listed = index;
    }
    shares->last = index;
}

void share_leave(struct nvmf_target *target, uint16_t index)
{
    struct nvmf_shares *shares = &target->shares;
    struct nvmf_qpair *qpair = &target->qpair[index];

    if (!qpair->is_listed) {
        return;
    }
    qpair->is_listed = false;
    if (qpair->prev_listed == NO_QPAIR) {
        shares->first = qpair->next_listed;
    } else {
        target->qpair[qpair->prev_listed].next_listed = qpair->next_listed;
    }
    if (qpair->next_listed == NO_QPAIR) {
        shares->last = qpair->prev_listed;
    } else {
        target->qpair[qpair->next_listed].prev_listed = qpair->prev_listed;
    }
    if (change_count(target, qpair->host, -1) == 0) {
        shares->addresses--;
    }
}

uint16_t share_count(const struct nvmf_target *target, const uint8_t *host)
{
    for (uint16_t i = target->shares.first; i != NO_QPAIR;
         i = target->qpair[i].next_listed) {
        if (is_same_address(&target->qpair[i], host)) {
            return target->qpair[i].of_address;
        }
    }
    return 0;
}

uint16_t share_choose(const struct nvmf_target *target, share_filter *may_go,
                      const uint8_t *except)
{
    uint16_t chosen = NO_QPAIR;
    uint16_t most = 0;

    for (uint16_t i = target->shares.first; i != NO_QPAIR;
         i = target->qpair[i].next_listed) {
        const struct nvmf_qpair *qpair = &target->qpair[i];

        if (qpair->of_address > most &&
            (may_go == NULL || may_go(target, qpair)) &&
            (except == NULL || !is_same_address(qpair, except))) {
            most = qpair->of_address;
            chosen = i;
        }
    }
    return chosen;
}

/* ---- For transports. */

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
    while (!is_same_address(&target->qpair[*index], address)) {
        *index = target->qpair[*index].next_listed;
    }
    return displace_queue(target, *index, params->transport);
}

uint32_t nvmf_target_displaced(const struct nvmf_target *target)
{
    return target->shares.displaced;
}

void share_init(struct nvmf_target *target)
{
    target->shares.first = NO_QPAIR;
    target->shares.last = NO_QPAIR;
}
