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

#endif
