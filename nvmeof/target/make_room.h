/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What NVMe/TCP asks of the target when it has no room for a connection or for
 * a command.
 */
#ifndef ESSD_NVMEOF_TARGET_MAKE_ROOM_H
#define ESSD_NVMEOF_TARGET_MAKE_ROOM_H

#include "nvmeof/target/target.h"

/**
 * There are as many connections as there may be: end one whose host has proven
 * no identity, for one of this host.
 *
 * @return false when there is none
 */
MUST_USE bool nvmf_qpair_displace_tcp(struct nvmf_target *target,
                                      const uint8_t *host, uint64_t now_us);

/**
 * A transport cannot read a queue pair's stream any further, because commands
 * with data in their capsules keep its memory, and data that the target fetches
 * is behind them.  If one of these commands waits for a command of another
 * queue pair, whose transport may wait in the same way, end it with Command
 * Interrupted, so that its host repeats it.
 *
 * @return whether there was one; its response is given to the transport inside
 */
MUST_USE bool nvmf_qpair_interrupt(struct nvmf_target *target, uint16_t qpair,
                                   uint64_t now_us);

#endif
