/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fake verbs with UD queue pair 1: they keep sent messages, and the test
 * delivers received ones.  Also a fake neighbour table, which counts pins.
 */
#ifndef ESSD_TESTS_NET_CM_FAKE_VERBS_H
#define ESSD_TESTS_NET_CM_FAKE_VERBS_H

#include "net/cm/cm.h"
#include "net/verbs/verbs.h"

enum { FAKE_SENT = 1024, FAKE_NEIGHS = 16, FAKE_SQ = 1024, FAKE_RQ = 1024 };

struct fake_mad {
    uint8_t bytes[MAD_LEN];
    uint16_t neigh;
    uint8_t laddr;
    uint8_t priority, dscp;
};

struct verbs {
    struct verbs_qp_config config;
    bool exists;
    bool refuse_create;
    bool hold_completions; /* sends do not complete */
    struct fake_mad sent[FAKE_SENT];
    uint32_t sent_put, sent_get;
    uint64_t done[FAKE_SQ];
    uint32_t done_put, done_get;
    uint32_t sq_used, sq_depth;
    struct {
        uint64_t wr_id;
        struct verbs_sge sge;
    } rq[FAKE_RQ];
    uint32_t rq_put, rq_get;
    unsigned int created;
};

struct fake_paths {
    int pins[FAKE_NEIGHS];
    uint8_t mtu; /* MTU of the port */
    uint8_t priority;
    bool has_no_room;
    bool is_no_host;             /* no message can be answered */
    unsigned int unpins_to_room; /* resolve() fails until unpin() was called
                                  * this many times more */
};

extern const struct cm_path_ops fake_path_ops;

/* Complete all posted sends. */
void fake_complete(struct verbs *verbs);

/* The next message sent, or NULL. */
const struct fake_mad *fake_take(struct verbs *verbs);

/* Deliver a message.  @return false when no buffer is posted */
bool fake_deliver(struct verbs *verbs, const struct verbs_ud_info *from,
                  const uint8_t *mad, uint32_t len);

/* Make QP 1 fail. */
void fake_break(struct verbs *verbs);

#endif
