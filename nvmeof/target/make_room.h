/* SPDX-License-Identifier: BSD-2-Clause */
/* What transports ask of the target when they have no room for a connection. */
#ifndef ESSD_NVMEOF_TARGET_MAKE_ROOM_H
#define ESSD_NVMEOF_TARGET_MAKE_ROOM_H

#include "nvmeof/target/target.h"

/**
 * There are as many connections as there may be: end one whose host has proven
 * no identity, for one of this host.
 *
 * @param transport  if it is within another one: end one that is, too
 * @return false when there is none
 */
MUST_USE bool nvmf_qpair_displace_tcp(struct nvmf_target *target,
                                      const struct nvmf_transport *transport,
                                      const uint8_t *host, uint64_t now_us);

/** Whether that may end one for any host. */
bool nvmf_qpair_may_displace_tcp(const struct nvmf_target *target,
                                 const struct nvmf_transport *transport);

/** Whether the end of a queue pair lets another one be reserved.  That of one
 * which has borrowed a promised queue may not, because the promise stays. */
bool nvmf_qpair_makes_room(const struct nvmf_target *target, uint16_t qpair);

#endif
