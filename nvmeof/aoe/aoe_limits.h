/* SPDX-License-Identifier: BSD-2-Clause */
/* Sizes of the pools of the AoE target. */
#ifndef ESSD_NVMEOF_AOE_LIMITS_H
#define ESSD_NVMEOF_AOE_LIMITS_H

#include "nvmeof/limits.h"

enum {
    AOE_PORTS = 2,

    /* Commands of all hosts that are being executed.  A frame that finds no
     * slot is dropped, and its host repeats it.  The slots fill an I/O queue,
     * which holds one command less than it has entries. */
    AOE_SLOTS = NVMF_MAX_DEPTH - 1,
    /* Slots that one port, and one MAC address, may have at a time.  MAC
     * addresses are free to invent, so the second one keeps order among hosts
     * that behave; a stranger at one port leaves slots to the other port. */
    AOE_PORT_SLOTS = 48,
    AOE_PEER_SLOTS = 16, /* the buffer count that hosts are told */

    /* 17 sectors would fit into a frame of 9000 bytes, but then every second
     * frame would begin within a unit of 4096 bytes. */
    AOE_SECTORS_MAX = 16,
    AOE_SLOT_BYTES = AOE_SECTORS_MAX * 512,
    AOE_MEMORY_BYTES = (AOE_SLOTS + 1) * AOE_SLOT_BYTES,
    AOE_REQUESTS = AOE_SLOTS + 1, /* one for Connect and Property Set */

    /* Stations whose finished writes are known, and how many writes of each. */
    AOE_PEERS = 64,
    AOE_PEER_WRITES = 32,

    AOE_MACS = 64, /* in the mask list, and in the reservation, of a device */

    /* Queries to all devices that are being answered. */
    AOE_QUERIES = 32,
    /* So many may be of one port: those of a port that takes no frames stay. */
    AOE_PORT_QUERIES = 24,
    AOE_QUERY_ANSWERS = 16, /* to them in one turn */
};

#endif
