/* SPDX-License-Identifier: BSD-2-Clause */
/* What transports ask of the target when they have no room for a connection. */
#ifndef ESSD_NVMEOF_TARGET_MAKE_ROOM_H
#define ESSD_NVMEOF_TARGET_MAKE_ROOM_H

#include "nvmeof/target/target.h"

/**
 * There are as many connections as there may be: end one whose host has proven
 * no identity, for one of this host.
 *
 * @param transport  the one without room; if it is a part (`within`), only
 *                   connections of a part are ended
 * @return false when there is none
 */
MUST_USE bool nvmf_qpair_displace_tcp(struct nvmf_target *target,
                                      const struct nvmf_transport *transport,
                                      const uint8_t *host, uint64_t now_us);

/** Whether that may end one for any host. */
bool nvmf_qpair_may_displace_tcp(const struct nvmf_target *target,
                                 const struct nvmf_transport *transport);

/**
 * Whether the end of a queue pair helps nvmf_qpair_reserve() with these params.
 * If it has borrowed a promised queue, that goes back to the controller that
 * lent it.  This helps who may borrow it then, and nobody else.
 */
bool nvmf_qpair_makes_room(const struct nvmf_target *target,
                           const struct nvmf_qpair_params *params,
                           uint16_t qpair);

/* Which queue pair has to go for a request. */
enum nvmf_room {
    NVMF_ROOM_NONE,  /* None has to. */
    NVMF_ROOM_OWN,   /* One of the same transport, which ends its connection at
                      * once and without waiting for the peer.  Requests without
                      * hints get NVMF_ROOM_LATER. */
    NVMF_ROOM_NOW,   /* One of another transport, whose part of the queue budget
                      * is free already. */
    NVMF_ROOM_LATER, /* One of another transport, whose number is free when its
                      * connection has ended. */
};

/**
 * nvmf_qpair_reserve() has found no resources for a request: choose a queue
 * pair that has to go, because its host has proven no identity and another
 * address has its share already.  The target ends one of another transport.
 *
 * @param qpair  set to the one of NVMF_ROOM_OWN
 */
MUST_USE enum nvmf_room nvmf_qpair_displace(
    struct nvmf_target *target, const struct nvmf_qpair_params *params,
    uint64_t now_us, uint16_t *qpair);

/** @return how many queue pairs end without waiting for their peers, and give
 *          their numbers back then */
uint32_t nvmf_qpair_numbers_expected(const struct nvmf_target *target);

/**
 * The same, before nvmf_qpair_reserve(), for NVMF_UNPROVEN_ADDRESSES and
 * NVMF_UNPROVEN_STREAMS.  Call it until it returns false.
 *
 * @param address  16 bytes, zero before the first call: the address that loses
 *                 its queue pairs, for the next call
 */
MUST_USE bool nvmf_qpair_displace_address(
    struct nvmf_target *target, const struct nvmf_qpair_params *params,
    uint8_t *address, uint16_t *qpair);

#endif
