/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the files of the chapters `limits` and `robust` share: many queue pairs
 * that are made by hand with little effort, and the pool levels from the
 * drive's console.
 */
#ifndef ESSD_CONFORM_LIMITS_LIB_H
#define ESSD_CONFORM_LIMITS_LIB_H

#include "nvmf_lib.h"

enum {
    LIMITS_QUEUE_PAIRS = 1024,
    LIMITS_DEPTH = 8191, /* The sum of all SQ depths stays below 8192. */
    LIMITS_HOSTS = 255,
    LIMITS_ADMIN_DEPTH = 32,
    LIMITS_SLOTS = 1200,
    LIMITS_NO_SLOT = -1,
};

/* A queue pair that the CM has connected; nothing was sent on it yet. */
struct limits_slot {
    bool is_open;
    unsigned int port;
    uint32_t comm_id, target_comm_id;
    uint32_t qpn, target_qpn;
    struct packet_path path;
};

/* Many such queue pairs, of one peer or of many. */
struct limits {
    struct conf *conf;
    struct rc *rc; /* It is loaded with one slot after another. */
    uint32_t first_comm_id, first_qpn;
    bool has_no_rtu;     /* The RTU is not sent. */
    uint16_t rej_reason; /* The reason of the last REJ. */
    uint16_t rej_status; /* enum nvme_rdma_status, when rej_reason is 28. */
    unsigned int num_open;
    unsigned int next; /* The next slot; slots are not reused. */
    struct limits_slot slots[LIMITS_SLOTS];
};

/**
 * Make an empty set. The test is not applicable unless the target is this
 * project's drive, whose data sheet the limits are taken from. Waits until the
 * drive holds nothing of earlier tests.
 */
struct limits *limits_new(struct conf *conf);

/**
 * What a REQ asks for. All zero: an admin queue of 32 entries from peer 0 on
 * port 0.
 */
struct limits_ask {
    unsigned int port;
    uint16_t qid, cntlid;
    uint16_t depth; /* 0 stands for 32. */
    /* The peer that sends the REQ, over IPv6; NULL: peer 0. */
    const struct conf_peer *from;
};

/** Send a REQ. @return the slot, or LIMITS_NO_SLOT when it was refused */
int limits_ask(struct limits *limits, const struct limits_ask *ask);

/**
 * Take an I/O queue of `depth` entries that belongs to no controller; fails
 * when it is refused. @return its slot
 */
int limits_take(struct limits *limits, uint16_t depth);

/** Take an admin queue; fails when it is refused. @return its slot */
int limits_take_admin(struct limits *limits);

/** Send such a REQ; the target must refuse it for want of resources. */
void limits_expect_full(struct limits *limits, uint16_t qid, uint16_t depth);

/** End the connection with a DREQ, and expect the DREP. */
void limits_release(struct limits *limits, int slot);
/** Send a REJ for a connection that got no RTU. */
void limits_reject(struct limits *limits, int slot);
void limits_release_all(struct limits *limits);

/**
 * Take admin queues of 32 entries and one I/O queue, with `depth` entries in
 * all.
 */
void limits_fill_depth(struct limits *limits, unsigned int depth);

/* ---- The console's `pools`. */

/**
 * How many entries of a pool are in use; `name` is the console's name for it.
 */
unsigned long limits_pool(struct conf *conf, const char *name);

/**
 * Wait until `expected` entries are in use; fails when that takes too long.
 * This function and limits_expect_idle() do nothing when the target is not
 * ours, as its pools cannot be read.
 */
void limits_expect_pool(struct conf *conf, const char *name,
                        unsigned long expected);

/** Wait until no pool holds anything that belongs to connections. */
void limits_expect_idle(struct conf *conf, uint64_t timeout_us);

#endif
