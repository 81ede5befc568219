/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The rings that the RNIC and firmware share in DRAM, from the RNIC's side.
 * Formats are in hw-model/regs/rnic.h, rules in docs/hardware/rnic.md.
 *
 * Each entry is read into a plain struct once, because firmware may change it
 * at any time.  Every value is checked where it is used.
 */
#ifndef ESSD_NET_VERBS_RINGS_H
#define ESSD_NET_VERBS_RINGS_H

#include "net/verbs/objects.h"

enum { RDMA_SGES = 4, RDMA_INLINE_MAX = 64 };

struct rdma_sge {
    uint64_t addr;
    uint32_t len_bytes;
    uint32_t lkey;
};

/* A send work queue entry. */
struct rdma_wr {
    uint8_t opcode; /* enum verbs_wr_opcode, unchecked */
    bool signaled, fence, linked, inline_data, solicited;
    uint8_t num_sge;    /* unchecked */
    uint8_t inline_len; /* unchecked */
    uint8_t pi_action;
    uint8_t ud_laddr;
    uint8_t ud_roce;     /* enum rnic_roce, unchecked */
    uint8_t ud_priority; /* unchecked */
    uint8_t ud_dscp;     /* unchecked */
    uint16_t ud_neigh;
    uint32_t inv_key;
    uint64_t wr_id;
    uint64_t remote_addr;
    uint32_t rkey;
    uint32_t after_media;
    uint32_t ud_qpn;
    uint32_t ud_qkey;
    const uint8_t *inline_bytes; /* RDMA_INLINE_MAX bytes in DRAM */
    struct rdma_sge sge[RDMA_SGES];
};

/* A receive work queue entry. */
struct rdma_recv {
    uint64_t wr_id;
    uint64_t addr;
    uint32_t len_bytes;
    uint32_t lkey;
};

struct rdma_completion {
    uint64_t wr_id;
    uint32_t qpn;
    uint32_t len_bytes;
    uint32_t inv_key;
    uint16_t wqe;   /* send: low bits of the entry's count */
    uint8_t opcode; /* enum verbs_wr_opcode, RDMA_WC_RECV */
    uint8_t status; /* enum verbs_wc_status */
    bool with_inv;
    uint64_t timestamp_ns;
};
enum { RDMA_WC_RECV = 0x80 };

enum rdma_event_type {
    RDMA_EVENT_QP_FATAL = 1,
    RDMA_EVENT_QP_ESTABLISHED = 2,
    RDMA_EVENT_QP_DRAINED = 3,
    RDMA_EVENT_CQ_OVERFLOW = 4,
    RDMA_EVENT_RQ_LOW = 5,
    RDMA_EVENT_MEMORY_ERROR = 6,
    RDMA_EVENT_LINK = 7,
    RDMA_EVENT_PARITY_ERROR = 8,
};

/* Of a parity error: the direction of the transfer. */
enum rdma_direction { RDMA_TO_DRAM = 0, RDMA_FROM_DRAM = 1 };

/** Read a 32-bit word that firmware writes; 0 if it is not in DRAM. */
uint32_t rdma_read_word(const struct rdma_dram *dram, uint64_t addr);

/** Publish a 32-bit word after everything that was written before. */
void rdma_write_word(const struct rdma_dram *dram, uint64_t addr,
                     uint32_t value);

/**
 * Read the send entry of `count`.
 *
 * @return false when the ring is not in DRAM
 */
MUST_USE bool rdma_sq_read(const struct rdma_qp *qp,
                           const struct rdma_dram *dram, uint32_t count,
                           struct rdma_wr *wr);

/** The number of entries in a receive queue; 0 if firmware's index is invalid.
 */
uint32_t rdma_rq_waiting(const struct rdma_rq *rq,
                         const struct rdma_dram *dram);

/**
 * Read the next receive entry.  The caller takes it by adding 1 to rq->ci.
 *
 * @return false when there is none
 */
MUST_USE bool rdma_rq_peek(const struct rdma_rq *rq,
                           const struct rdma_dram *dram,
                           struct rdma_recv *recv);

/**
 * Write a completion.
 *
 * @return false when the queue has no room: nothing was written
 */
MUST_USE bool rdma_cq_write(struct rdma_objects *o,
                            const struct rdma_dram *dram, uint16_t cq,
                            const struct rdma_completion *c);

/**
 * Write a completion.  If the queue has no room, the completion is lost, and
 * all queue pairs that use the queue have to fail, whichever engine serves
 * them: see rdma_objects.cqs_lost.
 *
 * @return whether CQ_OVERFLOW was raised, which happens once for each CQ
 */
bool rdma_cq_complete(struct rdma_objects *o, const struct rdma_dram *dram,
                      uint16_t cq, const struct rdma_completion *c);

/** Raise an event; dropped and counted when the hart's queue is full. */
void rdma_eq_write(struct rdma_objects *o, const struct rdma_dram *dram,
                   uint8_t hart, enum rdma_event_type type, uint32_t index,
                   uint32_t info);

/* The source of a UD message. */
struct rdma_ud_source {
    uint8_t port, laddr, priority;
    bool is_v1;
    uint16_t vlan;
    uint32_t qpn;
    struct mac_addr mac;
    struct ip_addr src_ip, dst_ip;
};

/** Write VERBS_UD_HEADER bytes. */
void rdma_ud_source_emit(const struct rdma_ud_source *source, uint8_t *buf);

#endif
