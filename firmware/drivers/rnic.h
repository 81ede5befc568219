/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Driver of the RNIC: implements net/verbs/verbs.h for one hart.
 * Reference: docs/hardware/rnic.md; registers in hw-model/regs/rnic.h.
 *
 * Ring memory is carved from DRAM once, in classes of one size each, and handed
 * out and taken back whole: no fragmentation, whatever the order.  QPN slots
 * are reused in order of release, so that a number rests as long as possible.
 *
 * Left out: shared receive queues and events about links, memory and low
 * receive queues (counted only; nothing in the drive acts on them yet).
 */
#ifndef ESSD_FIRMWARE_DRIVERS_RNIC_H
#define ESSD_FIRMWARE_DRIVERS_RNIC_H

#include "firmware/hal/dram.h"
#include "lib/init_result.h"
#include "lib/util.h"
#include "net/verbs/verbs.h"

enum {
    RNIC_QP_SLOTS = 1026,  /* slot 0 stays empty, slot 1 is QPN 1 */
    RNIC_SLOT_FIFO = 2048, /* a power of two: its counts run freely */
    RNIC_MR_SLOTS = 1024,
    RNIC_SQ_CLASSES = 11, /* rings of 1 << class entries */
    RNIC_RQ_CLASSES = 16,
};

struct verbs_config {
    uintptr_t regs;      /* where the registers are */
    struct dram *dram;   /* rings are allocated here, for good */
    uint8_t hart;        /* 0..3 */
    uint32_t generation; /* boot counter: QPNs of two boots differ */
    bool has_cnp;        /* ECN marks are answered */
    bool has_dcqcn;      /* CNPs slow a QP, whose packets may be marked */

    /*
     * How many rings of 1 << n entries, or NULL for rnic_default_sq_rings and
     * rnic_default_rq_rings: enough for every mix of queue depths that the
     * data sheet allows (1024 QPs, depths below 8192 in total), at four send
     * and two receive entries for each entry of depth.
     */
    const uint16_t *sq_rings; /* RNIC_SQ_CLASSES of them */
    const uint16_t *rq_rings; /* RNIC_RQ_CLASSES of them */
};

extern const uint16_t rnic_default_sq_rings[RNIC_SQ_CLASSES];
extern const uint16_t rnic_default_rq_rings[RNIC_RQ_CLASSES];

/* What the driver met and nobody was told of otherwise. */
struct rnic_counters {
    uint64_t stale_completions; /* of QPs that are destroyed */
    uint64_t stale_events;
    uint64_t other_events; /* link, memory, RQ low, CQ overflow */
    uint64_t kicks;
    uint64_t doorbells;
    uint64_t doorbell_waits; /* doorbell ring full: sent by a later flush */
    uint64_t commands_refused;
};

struct rnic_ring_class {
    uint8_t *base;
    uint8_t *free; /* list of given-back rings, through themselves */
    uint16_t total;
    uint16_t carved; /* rings that have ever been in use */
};

struct rnic_cq {
    uint8_t *ring;
    uint8_t *record;
    uint32_t mask;
    uint32_t ci;
    uint32_t room; /* entries that no QP has a claim on */
};

/* A slot whose QP is gone while CQEs of it may still lie in the CQs. */
struct rnic_resting {
    uint16_t slot;
    uint32_t claim[2]; /* entries to give back, by CQ */
    uint32_t until[2]; /* at the latest when ci has got here */
};

struct rnic_qp {
    uint32_t qpn; /* 0: no QP in this slot */
    uint32_t sq_pi, sq_ci, sq_mask;
    uint32_t rq_pi, rq_ci, rq_mask;
    uint8_t *sq, *rq, *records;
    const struct verbs_qp_ops *ops;
    void *ctx;
    uint16_t generation; /* of the next QP here */
    uint8_t sq_class, rq_class;
    uint8_t dirty; /* in verbs.dirty; outlives the QP */
};

/* Treat as opaque. */
struct verbs {
    uintptr_t regs;
    uintptr_t hart_regs;
    uint8_t hart;
    uint8_t poll_first; /* which CQ verbs_poll() begins with */

    uint8_t *page; /* hart page */
    uint8_t *commands;
    uint32_t cmd_pi;
    uint8_t *doorbells;
    uint32_t db_pi;
    uint8_t *events;
    uint32_t eq_ci;
    uint8_t *records; /* 64 bytes a QP slot: SQ at 0, RQ at 4 */

    struct rnic_cq cq[2];
    struct rnic_ring_class sq_class[RNIC_SQ_CLASSES];
    struct rnic_ring_class rq_class[RNIC_RQ_CLASSES];

    struct rnic_qp qps[RNIC_QP_SLOTS];
    uint16_t free_slots[RNIC_SLOT_FIFO]; /* FIFO */
    uint32_t free_put, free_get;
    struct rnic_resting resting[RNIC_SLOT_FIFO]; /* FIFO, as free_slots */
    uint32_t rest_put, rest_get;
    uint16_t dirty[RNIC_QP_SLOTS];
    uint32_t dirty_count;

    uint32_t local_key;
    uint16_t free_mrs[RNIC_MR_SLOTS]; /* FIFO */
    uint32_t mr_put, mr_get;
    uint8_t mr_variant[RNIC_MR_SLOTS];

    struct rnic_counters counters;
};

/**
 * Reset the RNIC, set up this hart's rings, the local key and the CQs, and
 * enable the engine and the hart's interrupt.  Waits.
 *
 * @return INIT_OK, or why it does not start: then `verbs` is of no use
 */
MUST_USE enum init_result verbs_init(struct verbs *verbs,
                                     const struct verbs_config *config);

/** What a queue pair that is not slowed down gets to: the ports' speed. */
void rnic_set_line_rate(struct verbs *verbs, uint32_t mbps);

/* One of the RNIC's own counters, enum rnic_counter. */
uint64_t rnic_counter_read(const struct verbs *verbs, unsigned int counter);

#endif
