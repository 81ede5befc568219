/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Driver of the RNIC: implements net/verbs/verbs.h for one hart.
 * Reference: docs/hardware/rnic.md; registers in hw-model/regs/rnic.h.
 *
 * Ring memory is carved from DRAM once, into classes of rings of one size.
 * Rings are handed out and taken back whole, so that memory never fragments.
 * QPN slots are reused in the order of their release, so that a QPN stays
 * unused for as long as possible.
 *
 * Not implemented: shared receive queues.  Events about links, memory and low
 * receive queues are only counted, because nothing in the drive uses them.
 */
#ifndef ESSD_FIRMWARE_DRIVERS_RNIC_H
#define ESSD_FIRMWARE_DRIVERS_RNIC_H

#include "firmware/hal/dram.h"
#include "lib/init_result.h"
#include "lib/util.h"
#include "net/verbs/verbs.h"

enum {
    RNIC_QP_SLOTS = 1026,  /* slot 0 stays empty, slot 1 holds QP 1 */
    RNIC_SLOT_FIFO = 2048, /* a power of two, because its indices wrap freely */
    RNIC_MR_SLOTS = 1024,
    RNIC_SQ_CLASSES = 11, /* the rings of a class have 1 << class entries */
    RNIC_RQ_CLASSES = 16,
};

struct verbs_config {
    uintptr_t regs;    /* address of the registers */
    struct dram *dram; /* rings are allocated here and never freed */
    uint8_t hart;      /* 0..3 */
    /* Boot counter; it makes the QPNs of two boots differ. */
    uint32_t generation;
    bool has_cnp; /* received ECN marks are answered with CNPs */
    /* CNPs slow their QP down; its packets are sent as ECN-capable. */
    bool has_dcqcn;

    /* Data of a queue pair had a parity error between RNIC and DRAM, and the
     * queue pair fails.  NULL: nobody needs to know. */
    void (*parity_error)(void *ctx, uint32_t qpn, bool is_to_dram);
    void *ctx;

    /*
     * How many rings of 1 << n entries there are.  NULL means
     * rnic_default_sq_rings and rnic_default_rq_rings, which suffice for every
     * mix of queue depths that the data sheet allows (1024 QPs, depths below
     * 8192 in total), with four send and two receive entries for each entry of
     * depth.
     */
    const uint16_t *sq_rings; /* RNIC_SQ_CLASSES numbers */
    const uint16_t *rq_rings; /* RNIC_RQ_CLASSES numbers */
};

extern const uint16_t rnic_default_sq_rings[RNIC_SQ_CLASSES];
extern const uint16_t rnic_default_rq_rings[RNIC_RQ_CLASSES];

/* Counts of what the driver reports to nobody else. */
struct rnic_counters {
    uint64_t stale_completions; /* completions of destroyed QPs */
    uint64_t stale_events;
    /* Events about links, memory, low RQs and CQ overflow. */
    uint64_t other_events;
    uint64_t kicks;
    uint64_t doorbells;
    /* The doorbell ring was full: a later flush sent them. */
    uint64_t doorbell_waits;
    uint64_t commands_refused;
};

struct rnic_ring_class {
    uint8_t *base;
    /* List of returned rings, linked through their first bytes. */
    uint8_t *free;
    uint16_t total;
    uint16_t carved; /* rings that have been in use at least once */
};

struct rnic_cq {
    uint8_t *ring;
    uint8_t *record;
    uint32_t mask;
    uint32_t ci;
    uint32_t room; /* entries that no QP has reserved */
};

/* A slot whose QP is destroyed while its CQEs may still be in the CQs. */
struct rnic_resting {
    uint16_t slot;
    uint32_t claim[2]; /* reserved entries to release, for each CQ */
    /* Value of ci at which they are released at the latest. */
    uint32_t until[2];
};

struct rnic_qp {
    uint32_t qpn; /* 0: no QP in this slot */
    uint32_t sq_pi, sq_ci, sq_mask;
    uint32_t rq_pi, rq_ci, rq_mask;
    uint8_t *sq, *rq, *records;
    const struct verbs_qp_ops *ops;
    bool (*is_plain)(const void *ctx); /* of ops; NULL: none is */
    void *ctx;
    uint16_t generation; /* generation of the next QP in this slot */
    uint8_t sq_class, rq_class;
    uint8_t type; /* enum verbs_qp_type */
    /* The slot is listed in verbs.dirty, even if its QP is gone. */
    uint8_t dirty;
};

/* Treat as opaque. */
struct verbs {
    uintptr_t regs;
    uintptr_t hart_regs;
    uint8_t hart;

    uint8_t *page; /* hart page */
    uint8_t *commands;
    uint32_t cmd_pi;
    uint8_t *doorbells;
    uint32_t db_pi;
    uint8_t *events;
    uint32_t eq_ci;
    /* 64 bytes for each QP slot: SQ record at 0, RQ record at 4. */
    uint8_t *records;

    /* The address for devices of any memory in DRAM minus its pointer. */
    uintptr_t addr_offset;

    struct rnic_cq cq[2];
    struct rnic_ring_class sq_class[RNIC_SQ_CLASSES];
    struct rnic_ring_class rq_class[RNIC_RQ_CLASSES];

    struct rnic_qp qps[RNIC_QP_SLOTS];
    uint16_t free_slots[RNIC_SLOT_FIFO]; /* in order of release */
    uint32_t free_put, free_get;
    /* In order of release, as free_slots. */
    struct rnic_resting resting[RNIC_SLOT_FIFO];
    uint32_t rest_put, rest_get;
    uint16_t dirty[RNIC_QP_SLOTS];
    uint32_t dirty_count;

    void (*parity_error)(void *ctx, uint32_t qpn, bool is_to_dram);
    void *ctx; /* of parity_error */

    uint32_t local_key;
    uint16_t free_mrs[RNIC_MR_SLOTS]; /* in order of release */
    uint32_t mr_put, mr_get;
    uint8_t mr_variant[RNIC_MR_SLOTS];

    struct rnic_counters counters;
};

/**
 * Reset the RNIC, set up this hart's rings, the local key and the CQs, and
 * enable the engine and the hart's interrupt.  This waits for the RNIC.
 *
 * @return INIT_OK, or why the RNIC does not start; `verbs` is then unusable
 */
MUST_USE enum init_result verbs_init(struct verbs *verbs,
                                     const struct verbs_config *config);

/** Set the rate of a queue pair that is not slowed down: the ports' speed. */
void rnic_set_line_rate(struct verbs *verbs, uint32_t mbps);

/**
 * Switch congestion management: see struct verbs_config.  The packets of
 * connections that exist already keep their ECN code point.
 */
void rnic_set_ecn(struct verbs *verbs, bool has_cnp, bool has_dcqcn);

/* Read one of the RNIC's own counters, enum rnic_counter. */
uint64_t rnic_counter_read(const struct verbs *verbs, unsigned int counter);

/* The same of iWARP, enum rnic_iw_counter. */
uint64_t rnic_iw_counter_read(const struct verbs *verbs, unsigned int counter);

#endif
