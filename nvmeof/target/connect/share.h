/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The state of the shares of addresses: share.c.
 */
#ifndef ESSD_NVMEOF_TARGET_CONNECT_SHARE_H
#define ESSD_NVMEOF_TARGET_CONNECT_SHARE_H

#include "lib/util.h"

/* The queue pairs whose hosts have proven no identity, the oldest first:
 * share.c. */
struct nvmf_shares {
    uint16_t first, last;
    uint16_t addresses; /* that take a neighbour: share_takes_neighbour() */
    uint32_t displaced; /* since power-on */
};

#endif
