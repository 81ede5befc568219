/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The RNIC's objects, independent of the RDMA transport: protection domains,
 * memory regions, completion, receive and event queues, queue pairs and
 * addresses.  docs/hardware/rnic.md, section 3, describes them.
 *
 * Every look-up is by index, and nothing here holds a pointer, so the whole
 * struct can be saved as it is.  rdma_objects_valid() checks a loaded one.
 *
 * Left out: memory windows, XRC, multicast.
 */
#ifndef ESSD_NET_VERBS_OBJECTS_H
#define ESSD_NET_VERBS_OBJECTS_H

#include "lib/util.h"
#include "net/verbs/verbs.h"
#include "net/wire/eth.h"
#include "net/wire/ip_addr.h"

enum {
    RDMA_PDS = 256,
    RDMA_MRS = 1024,
    RDMA_CQS = 64,
    RDMA_RQS = 1026,         /* one for each QP */
    RDMA_QPS = 1026,         /* slots: 0 is unused, 1 is for MADs, 1024 RC */
    RDMA_QPN_SLOT_BITS = 11, /* low bits of a QPN: its slot */
    RDMA_LADDRS = 8,
    RDMA_NEIGHS = 1024,
    RDMA_EQS = 4, /* one for each hart */
    RDMA_PORTS = 2,
    RDMA_MAD_QPN = 1,
    RDMA_NO_VLAN = 0xffff,
};

/* Access to DRAM: these functions return a pointer to `len` bytes, or NULL if
 * they cannot be accessed (hw-model/core/env.h). */
struct rdma_dram {
    void *ctx;
    void *(*map)(void *ctx, uint64_t addr, uint64_t len); /* to read them */
    void *(*map_write)(void *ctx, uint64_t addr, uint64_t len);
};

static inline void *rdma_map(const struct rdma_dram *dram, uint64_t addr,
                             uint64_t len)
{
    return dram->map(dram->ctx, addr, len);
}

/* For memory of which all bytes are overwritten. */
static inline void *rdma_map_write(const struct rdma_dram *dram, uint64_t addr,
                                   uint64_t len)
{
    return dram->map_write(dram->ctx, addr, len);
}

struct rdma_pd {
    bool exists;
    uint16_t users; /* number of MRs, RQs and QPs that use it */
};

struct rdma_mr {
    bool exists;
    uint8_t access;  /* enum verbs_access */
    uint8_t variant; /* key = index << 8 | variant */
    uint16_t pd;
    uint64_t va;
    uint64_t len_bytes;
    uint64_t dram; /* address of va in DRAM */
};

struct rdma_cq {
    bool exists;
    bool overflowed; /* CQ_OVERFLOW has been raised; later losses are silent */
    uint8_t hart;
    uint8_t size_log2;
    uint16_t users; /* number of QPs; one that uses it twice counts twice */
    uint32_t pi;    /* entries written, free-running */
    uint64_t base;
    uint64_t record; /* u32 consumer index, firmware's */
};

struct rdma_rq {
    bool exists;
    bool low_raised; /* RQ_LOW was raised and the level has not risen since */
    uint8_t size_log2;
    uint16_t pd;
    uint16_t users; /* QPs */
    uint32_t low;   /* RQ_LOW below this many entries; 0 for never */
    uint32_t ci;    /* entries taken, free-running */
    uint64_t base;
    uint64_t record; /* u32 producer index, firmware's */
};

struct rdma_eq {
    bool exists;
    uint8_t size_log2;
    uint32_t pi;
    uint32_t dropped; /* events dropped because the queue was full */
    uint64_t base;
    uint64_t record; /* u32 consumer index, firmware's */
};

struct rdma_laddr {
    bool exists;
    uint8_t port;
    uint16_t vlan; /* RDMA_NO_VLAN: untagged */
    struct mac_addr mac;
    struct ip_addr ip;
};

struct rdma_neigh {
    bool exists;
    uint8_t port;   /* port through which frames to it leave */
    uint16_t vlan;  /* RDMA_NO_VLAN: untagged */
    uint16_t users; /* QPs */
    struct mac_addr mac;
    struct ip_addr ip;
};

/* The part of a QP that all transports share. */
struct rdma_qp {
    bool exists;
    bool drain_wanted; /* QP_DRAINED is due at drain_at */
    uint8_t state; /* enum verbs_qp_state; rdma_qp_enter() is the only writer */
    uint8_t type;  /* enum verbs_qp_type */
    uint8_t sq_size_log2;
    uint16_t pd;
    uint16_t send_cq, recv_cq;
    uint16_t rq;
    uint32_t qpn;      /* 24 bits; its slot is the low 11 */
    uint32_t sq_pi;    /* posted entries, as last read from the record */
    uint32_t sq_next;  /* next entry to start */
    uint32_t sq_done;  /* next entry to complete */
    uint32_t drain_at; /* value of sq_done that ends draining */
    uint64_t sq_base;
    uint64_t sq_record; /* u32 producer index, firmware's */
};

/* The transports of queue pairs: net/verbs/engine.h. */
enum rdma_engine_id { RDMA_ENGINE_ROCE, RDMA_ENGINE_IWARP, RDMA_ENGINES };

struct rdma_objects {
    struct rdma_pd pds[RDMA_PDS];
    struct rdma_mr mrs[RDMA_MRS];
    struct rdma_cq cqs[RDMA_CQS];
    struct rdma_rq rqs[RDMA_RQS];
    struct rdma_eq eqs[RDMA_EQS];
    struct rdma_qp qps[RDMA_QPS];
    struct rdma_laddr laddrs[RDMA_LADDRS];
    struct rdma_neigh neighs[RDMA_NEIGHS];
    uint32_t harts_dirty;  /* BIT(h): there are new entries for hart h */
    uint32_t harts_urgent; /* BIT(h): one of them is urgent (see rings.c) */
    /* BIT(cq): it has lost a completion, and this engine has yet to move the
     * queue pairs that use it to ERROR. */
    uint64_t cqs_lost[RDMA_ENGINES];
};

_Static_assert(RDMA_QPS <= 1 << RDMA_QPN_SLOT_BITS && RDMA_RQS >= RDMA_QPS,
               "every slot has a number, and may have a receive queue");

/* The slot of a QPN.  Check that it is below RDMA_QPS before using it. */
static inline uint32_t rdma_qp_slot(uint32_t qpn)
{
    return qpn & ((1u << RDMA_QPN_SLOT_BITS) - 1);
}

/* Whether a QP that is in use loses its completions in these CQs. */
static inline bool rdma_qp_has_lost(const struct rdma_qp *qp, uint64_t cqs)
{
    return qp->state != VERBS_QPS_RESET && qp->state != VERBS_QPS_ERROR &&
           (cqs >> qp->send_cq & 1 || cqs >> qp->recv_cq & 1);
}

/* The slot of an existing QP, or -1. */
static inline int rdma_qp_find(const struct rdma_objects *o, uint32_t qpn)
{
    uint32_t slot = rdma_qp_slot(qpn);

    return slot < RDMA_QPS && o->qps[slot].exists && o->qps[slot].qpn == qpn
               ? (int)slot
               : -1;
}

/** Whether a QP may go from one state to another. */
bool rdma_qp_may_enter(enum verbs_qp_state from, enum verbs_qp_state to);

/* The only writer of a QP's state.  An illegal move is our bug. */
void rdma_qp_enter(struct rdma_qp *qp, enum verbs_qp_state next);

/** The region of a key, regardless of its rights, or NULL. */
const struct rdma_mr *rdma_mr_find(const struct rdma_objects *o, uint32_t key);

/**
 * Map `len` bytes at `va` of the region with this key to DRAM.  With a right to
 * write, all of these bytes are overwritten.
 *
 * @param pd      the protection domain that asks
 * @param rights  enum verbs_access bits that are all needed; 0: local reading
 * @return NULL when key, domain, rights, bounds or DRAM address are invalid, or
 *         the bytes have a memory error that cannot be corrected
 */
void *rdma_mr_map(const struct rdma_objects *o, const struct rdma_dram *dram,
                  uint16_t pd, uint32_t key, unsigned int rights, uint64_t va,
                  uint64_t len);

/** Destroy a region: later uses of its key fail.  False when there is none. */
bool rdma_mr_destroy(struct rdma_objects *o, uint32_t index);

/** Whether every index and count of a loaded state is within its bounds. */
bool rdma_objects_valid(const struct rdma_objects *o);

#endif
