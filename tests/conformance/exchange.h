/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The NVMe commands and completions of a test, as they were on the wire: the
 * report of a failed test shows them by name (tools/essd/conform/exchange.py).
 *
 * Recorded are the first 64 bytes of each SEND to an NVMe queue of the target,
 * and the 16 bytes of each completion that comes back. CM messages tell which
 * queue pair belongs to which NVMe queue. Packets with a wrong ICRC count as
 * lost and are not recorded.
 */
#ifndef ESSD_CONFORM_EXCHANGE_H
#define ESSD_CONFORM_EXCHANGE_H

#include "nvmeof/wire/cqe.h"
#include "nvmeof/wire/sqe.h"
#include "packet.h"

enum {
    /* Only the latest ones are kept. */
    EXCHANGE_ENTRIES = 64,
    EXCHANGE_QUEUES = 256,
};

/* A command or a completion. */
struct exchange_entry {
    uint64_t time_us; /* The drive's clock, which may be virtual. */
    uint64_t wall_us; /* Real time, since 1970. */
    unsigned int port;
    uint32_t host_qpn;
    uint32_t psn; /* Equal PSNs of one queue pair: the packet was repeated. */
    uint16_t qid; /* As in the private data of the CM REQ. */
    bool is_completion;
    uint8_t bytes[NVME_SQE_LEN]; /* NVME_CQE_LEN for a completion. */
};

/* An NVMe queue, known from its CM REQ and REP. */
struct exchange_queue {
    unsigned int port;
    uint32_t comm_id; /* The host's. */
    uint32_t host_qpn, target_qpn;
    bool has_target_qpn; /* The REP was seen. */
    uint16_t qid;
};

/* All zero at the start of a test. */
struct exchange {
    uint32_t entries, queues; /* Numbers seen; both arrays are rings. */
    struct exchange_entry entry[EXCHANGE_ENTRIES];
    struct exchange_queue queue[EXCHANGE_QUEUES];
};

/**
 * Record what the packet carries, if it is a command or a completion.
 *
 * @param wall_us  the real time, since 1970
 */
void exchange_add(struct exchange *exchange, const struct packet *packet,
                  bool is_from_target, uint64_t wall_us);

/** The number of entries that are kept. */
uint32_t exchange_count(const struct exchange *exchange);

/** @param index  from 0, the earliest entry that is kept */
const struct exchange_entry *exchange_get(const struct exchange *exchange,
                                          uint32_t index);

#endif
