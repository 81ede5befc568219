/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which queue pair without proof has to go for another one: see share.c.  What
 * runs out may be used by the queue pairs of any transport.
 */
#include "nvmeof/target/connect/connect.h"

#include <string.h>

#include "nvmeof/target/make_room.h"

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

static bool is_ending(const struct nvmf_qpair *qpair)
{
    return qpair->state == QPAIR_CLOSING || qpair->state == QPAIR_DRAINING;
}

/* Whether a queue pair gives something back that runs out.  One that is ending
 * has been displaced before, or gives it back without that. */
static bool is_staying(const struct nvmf_target *target,
                       const struct nvmf_qpair *qpair)
{
    (void)target;
    return !is_ending(qpair);
}

static bool has_charge(const struct nvmf_target *target,
                       const struct nvmf_qpair *qpair)
{
    return qpair->charge != 0 && !qpair_borrows(target, qpair) &&
           is_staying(target, qpair);
}

/* Which queue pairs would give back what the target lacks now: a number, or
 * queue budget. */
static share_filter *filter_of(const struct nvmf_target *target)
{
    return target->qpair_count >= NVMF_MAX_QPAIRS ? is_staying : has_charge;
}

bool nvmf_qpair_makes_room(const struct nvmf_target *target,
                           const struct nvmf_qpair_params *params,
                           uint16_t index)
{
    const struct nvmf_qpair *qpair = &target->qpair[index];

    return filter_of(target)(target, qpair) ||
           (is_staying(target, qpair) &&
            qpair_returns_promise(target, qpair, params));
}

/* @return a queue pair that has to go for one of this host, or NO_QPAIR */
static uint16_t find_queue(const struct nvmf_target *target,
                           share_filter *may_go, const uint8_t *host)
{
    uint16_t index = share_choose(target, may_go, host);

    return index != NO_QPAIR && goes_before(target, &target->qpair[index], host)
               ? index
               : NO_QPAIR;
}

static void note_displaced(struct nvmf_target *target, uint16_t index)
{
    target->shares.displaced++;
    auth_displace(target, index);
}

static uint16_t choose_queue(struct nvmf_target *target, share_filter *may_go,
                             const uint8_t *host)
{
    uint16_t index = find_queue(target, may_go, host);

    if (index != NO_QPAIR) {
        note_displaced(target, index);
    }
    return index;
}

/* The oldest of the same address that this transport can end at once: numbers
 * of others are free later.  @return `index` if there is none */
static uint16_t own_of_address(const struct nvmf_target *target,
                               const struct nvmf_transport *transport,
                               uint16_t index)
{
    uint16_t i = target->shares.first;

    while (i != NO_QPAIR &&
           (target->qpair[i].transport != transport ||
            !is_staying(target, &target->qpair[i]) ||
            !share_is_address(&target->qpair[i], target->qpair[index].host))) {
        i = target->qpair[i].next_listed;
    }
    return i != NO_QPAIR ? i : index;
}

bool displace_for_connect(struct nvmf_target *target, uint16_t index,
                          uint16_t charge)
{
    uint32_t freed = 0;

    while (freed < charge) {
        uint16_t other =
            choose_queue(target, has_charge, target->qpair[index].host);

        if (other == NO_QPAIR) {
            return false;
        }
        freed += target->qpair[other].charge;
        target->qpair[other].is_displaced = true;
        qpair_end_silent(target, other);
    }
    return true;
}

/*
 * Another transport needs time to end its connection, and a request of RDMA
 * cannot wait for that.  But what such a queue pair still holds until then is
 * memory of its own transport, so its part of the budget is free at once.  Its
 * number is not, and neither is its controller, for which Connect waits.
 */
enum nvmf_room nvmf_qpair_displace(struct nvmf_target *target,
                                   const struct nvmf_qpair_params *params,
                                   uint64_t now_us, uint16_t *index)
{
    bool is_full = target->qpair_count >= NVMF_MAX_QPAIRS;

    target->now_us = now_us;
    *index = find_queue(target, filter_of(target), params->host);
    if (*index == NO_QPAIR) {
        return NVMF_ROOM_NONE;
    }
    if (is_full && params->hints != NULL) {
        *index = own_of_address(target, params->transport, *index);
    }
    note_displaced(target, *index);
    if (target->qpair[*index].transport == params->transport &&
        params->hints != NULL) {
        return NVMF_ROOM_OWN;
    }
    if (!is_full) {
        target->qpair[*index].is_displaced = true;
        qpair_give_charge(target, *index);
    }
    qpair_end_silent(target, *index);
    return is_full ? NVMF_ROOM_LATER : NVMF_ROOM_NOW;
}

uint32_t nvmf_qpair_numbers_expected(const struct nvmf_target *target)
{
    uint32_t count = 0;

    for (uint16_t i = 0; i < NVMF_MAX_QPAIRS; i++) {
        count += target->qpair[i].ends_now;
    }
    return count;
}

static bool is_of_tcp(const struct nvmf_target *target,
                      const struct nvmf_qpair *qpair)
{
    return qpair->transport->trtype == TRTYPE_TCP && is_staying(target, qpair);
}

static bool is_of_tcp_part(const struct nvmf_target *target,
                           const struct nvmf_qpair *qpair)
{
    return qpair->transport->within != NULL && is_of_tcp(target, qpair);
}

static share_filter *tcp_filter(const struct nvmf_transport *transport)
{
    return transport->within != NULL ? is_of_tcp_part : is_of_tcp;
}

bool nvmf_qpair_may_displace_tcp(const struct nvmf_target *target,
                                 const struct nvmf_transport *transport)
{
    return share_choose(target, tcp_filter(transport), NULL) != NO_QPAIR;
}

bool nvmf_qpair_displace_tcp(struct nvmf_target *target,
                             const struct nvmf_transport *transport,
                             const uint8_t *host, uint64_t now_us)
{
    uint16_t index;

    target->now_us = now_us;
    index = choose_queue(target, tcp_filter(transport), host);
    if (index != NO_QPAIR) {
        qpair_end_silent(target, index);
    }
    return index != NO_QPAIR;
}

static bool is_of_iwarp(const struct nvmf_target *target,
                        const struct nvmf_qpair *qpair)
{
    return qpair->is_stream && qpair->transport->trtype == TRTYPE_RDMA &&
           is_staying(target, qpair);
}

/* One more of iWARP is about to come. */
static bool displace_stream(struct nvmf_target *target, uint16_t *index)
{
    unsigned int count = 0;

    for (uint16_t i = target->shares.first; i != NO_QPAIR;
         i = target->qpair[i].next_listed) {
        count += is_of_iwarp(target, &target->qpair[i]);
    }
    if (count < NVMF_UNPROVEN_STREAMS) {
        return false;
    }
    *index = share_choose(target, is_of_iwarp, NULL);
    target->shares.displaced++;
    auth_displace(target, *index);
    return true;
}

bool nvmf_qpair_displace_address(struct nvmf_target *target,
                                 const struct nvmf_qpair_params *params,
                                 uint8_t *address, uint16_t *index)
{
    if (params->is_stream) {
        return displace_stream(target, index);
    }
    *index = target->shares.first;
    if (target->shares.addresses < NVMF_UNPROVEN_ADDRESSES ||
        share_has_neighbour(target, params->host)) {
        return false;
    }
    while (!share_takes_neighbour(&target->qpair[*index])) {
        *index = target->qpair[*index].next_listed;
    }
    if (!share_has_neighbour(target, address)) {
        memcpy(address, target->qpair[*index].host,
               sizeof(target->qpair[*index].host));
    }
    while (!share_is_address(&target->qpair[*index], address) ||
           !share_takes_neighbour(&target->qpair[*index])) {
        *index = target->qpair[*index].next_listed;
    }
    if (target->qpair[*index].transport != params->transport) {
        return false;
    }
    target->shares.displaced++;
    auth_displace(target, *index);
    return true;
}
