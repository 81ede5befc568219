/* SPDX-License-Identifier: BSD-2-Clause */
/* Sizes of the pools of the NVMe/TCP binding. */
#ifndef ESSD_NVMEOF_TCP_LIMITS_H
#define ESSD_NVMEOF_TCP_LIMITS_H

#include "nvmeof/limits.h"

enum {
    NVME_TCP_OPEN_MAX = 256,                /* each with one NVMe queue */
    NVME_TCP_TLS_MAX = NVMF_MAX_BEHIND_TLS, /* of these */
    /* Handshakes, whose peers may have forged their addresses, have places of
     * their own.  Connections that are being ended use them, too. */
    NVME_TCP_HANDSHAKES = 64,
    NVME_TCP_QUEUES = NVME_TCP_OPEN_MAX + NVME_TCP_HANDSHAKES,

    /* Requests of all queues.  A queue takes no more than twice its depth: one
     * running command and one unacknowledged response for each SQ entry. */
    NVME_TCP_REQUESTS = 2 * NVMF_MAX_REQUESTS,

    /* Received bytes of one connection, before they are read. */
    NVME_TCP_RING_LOG2 = 15,
    NVME_TCP_RING_LEN = 1 << NVME_TCP_RING_LOG2,

    /* Memory for data in capsules, in slots.  All connections together have
     * one for each SQ entry that the target grants, so that no I/O command
     * waits unread.  It also takes the block of a fused command, with its
     * protection information. */
    NVME_TCP_POOL_SLOTS = NVMF_TOTAL_DEPTH,
    NVME_TCP_POOL_SLOT_LEN = NVMF_IN_CAPSULE_LEN + 64,
    /* Each connection has some more, for Fabrics commands and for capsules with
     * more data than a slot, which take an even slot and the one after it. */
    NVME_TCP_SLOTS = 8,
    NVME_TCP_SLOT_LEN = NVMF_IN_CAPSULE_LEN,
    NVME_TCP_CAPSULE_MAX = 8192, /* of an admin or Fabrics command */

    /* Headers, digests and responses of one connection that wait for the peer's
     * acknowledgement. */
    NVME_TCP_STAGE_LEN = 4096,

    /* Pieces of memory that a connection sends: those that wait, and those
     * given to the socket. */
    NVME_TCP_SPANS = 64,
    NVME_TCP_SENDS = 16,
    /* From this many bytes on, a call of send() takes no further piece: the
     * buffers of all its pieces are free only when all are acknowledged. */
    NVME_TCP_SEND_BYTES = 16384,

    NVME_TCP_QUEUE_BYTES = NVME_TCP_RING_LEN +
                           NVME_TCP_SLOTS * NVME_TCP_SLOT_LEN +
                           NVME_TCP_STAGE_LEN,
    NVME_TCP_MEMORY_BYTES = NVME_TCP_QUEUES * NVME_TCP_QUEUE_BYTES +
                            NVME_TCP_POOL_SLOTS * NVME_TCP_POOL_SLOT_LEN,

    NVME_TCP_H2C_MAX = 262144, /* MAXH2CDATA: a multiple of 4 */

    /* Bytes that are copied or digested in a turn of the main loop.  The window
     * with which they are reached is digested to its end. */
    NVME_TCP_TURN_BYTES = 524288,
};

_Static_assert(NVME_TCP_POOL_SLOT_LEN % 64 == 0,
               "as aligned as RDMA's capsules");
_Static_assert(NVME_TCP_RING_LEN % NVME_TCP_SLOT_LEN == 0 &&
                   NVME_TCP_STAGE_LEN % NVME_TCP_SLOT_LEN == 0,
               "the slots are as aligned as the memory");

#endif
