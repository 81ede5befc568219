/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the files of chapters `limits` and `robust` share: many queue pairs by
 * hand at little cost, and what the drive's console says of its pools.
 */
#ifndef ESSD_CONFORM_LIMITS_LIB_H
#define ESSD_CONFORM_LIMITS_LIB_H

#include "nvmf_lib.h"

enum {
    LIMITS_QUEUE_PAIRS = 1024,
    LIMITS_DEPTH = 8191, /* the sum of all SQ depths stays below 8192 */
    LIMITS_HOSTS = 255,
    LIMITS_ADMIN_DEPTH = 32,
    LIMITS_SLOTS = 1200,
    LIMITS_NO_SLOT = -1,
};

/* A queue pair that the CM has made, and nothing more. */
struct limits_slot {
    bool is_open;
    unsigned int port;
    uint32_t comm_id, target_comm_id;
    uint32_t qpn, target_qpn;
    struct packet_path path;
};

/* Many of them, of one peer or of many. */
struct limits {
    struct conf *conf;
    struct rc *rc; /* stands for each slot in turn */
    uint32_t first_comm_id, first_qpn;
    bool has_no_rtu;     /* leave out the RTU */
    uint16_t rej_reason; /* of the last refusal */
    uint16_t rej_status; /* enum nvme_rdma_status, with reason 28 */
    unsigned int num_open;
    unsigned int next; /* slots are not used twice */
    struct limits_slot slots[LIMITS_SLOTS];
};

/** Not applicable unless the target is ours, whose data sheet the limits are
 *  of; waits until nothing of earlier tests is left. */
struct limits *limits_new(struct conf *conf);

/** What to ask for.  Zeroes: an admin queue of 32 from peer 0 on port 0. */
struct limits_ask {
    unsigned int port;
    uint16_t qid, cntlid;
    uint16_t depth;               /* 0: 32 */
    const struct conf_peer *from; /* IPv6, when it is not NULL */
};

/** A REQ. @return the slot, or LIMITS_NO_SLOT when it was refused */
int limits_ask(struct limits *limits, const struct limits_ask *ask);

/** An I/O queue of nobody's, that many entries. @return its slot */
int limits_take(struct limits *limits, uint16_t depth);

/** The same for an admin queue. */
int limits_take_admin(struct limits *limits);

/** Such a REQ is refused for want of resources. */
void limits_expect_full(struct limits *limits, uint16_t qid, uint16_t depth);

/** DREQ, DREP. */
void limits_release(struct limits *limits, int slot);
/** A REJ, of one that got no RTU. */
void limits_reject(struct limits *limits, int slot);
void limits_release_all(struct limits *limits);

/** Admin queues of 32 and one I/O queue: as much depth as that. */
void limits_fill_depth(struct limits *limits, unsigned int depth);

/* ---- The console's `pools`. */

/** How many are in use, by the console's name for them. */
unsigned long limits_pool(struct conf *conf, const char *name);

/** So many are in use, or are so soon.  This and limits_expect_idle() pass over
 *  a target that is not ours, which nobody can ask. */
void limits_expect_pool(struct conf *conf, const char *name,
                        unsigned long expected);

/** Nothing that belongs to connections is in use; waits for it that long. */
void limits_expect_idle(struct conf *conf, uint64_t timeout_us);

#endif
