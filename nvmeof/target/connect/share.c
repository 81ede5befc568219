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
#include "nvmeof/target/connect/connect.h"

#include <string.h>

bool share_is_address(const struct nvmf_qpair *a, const uint8_t *host)
{
    return memcmp(a->host, host, sizeof(a->host)) == 0;
}

bool share_takes_neighbour(const struct nvmf_qpair *qpair)
{
    return !qpair->is_stream;
}

bool share_has_neighbour(const struct nvmf_target *target, const uint8_t *host)
{
    uint16_t i = target->shares.first;

    while (i != NO_QPAIR && !(share_is_address(&target->qpair[i], host) &&
                              share_takes_neighbour(&target->qpair[i]))) {
        i = target->qpair[i].next_listed;
    }
    return i != NO_QPAIR;
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

        if (share_is_address(qpair, host)) {
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
    if (share_takes_neighbour(qpair) &&
        !share_has_neighbour(target, qpair->host)) {
        shares->addresses++;
    }
    qpair->is_listed = true;
    qpair->listed_us = target->now_us;
    qpair->of_address = (uint16_t)(change_count(target, qpair->host, 1) + 1);
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
    (void)change_count(target, qpair->host, -1);
    if (share_takes_neighbour(qpair) &&
        !share_has_neighbour(target, qpair->host)) {
        shares->addresses--;
    }
}

uint16_t share_count(const struct nvmf_target *target, const uint8_t *host)
{
    for (uint16_t i = target->shares.first; i != NO_QPAIR;
         i = target->qpair[i].next_listed) {
        if (share_is_address(&target->qpair[i], host)) {
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
            (except == NULL || !share_is_address(qpair, except))) {
            most = qpair->of_address;
            chosen = i;
        }
    }
    return chosen;
}

uint32_t nvmf_target_displaced(const struct nvmf_target *target)
{
    return target->shares.displaced;
}
void share_init(struct nvmf_shares *shares)
{
    shares->first = NO_QPAIR;
    shares->last = NO_QPAIR;
}
