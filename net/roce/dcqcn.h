/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * DCQCN's reaction point: how fast a queue pair may send after congestion
 * notifications.  Formulae and parameters: docs/hardware/rnic.md, section 7.
 * Follows: Zhu et al., "Congestion Control for Large-Scale RDMA Deployments",
 * SIGCOMM 2015, sections 3.1 (algorithm) and 5 (parameters).
 *
 * Changes that depend on time are computed when a packet is to be sent, so that
 * a queue pair without a limit or without packets costs nothing.
 *
 * Left out: a limit on a flow's initial rate, gains other than the paper's.
 */
#ifndef ESSD_NET_ROCE_DCQCN_H
#define ESSD_NET_ROCE_DCQCN_H

#include "lib/util.h"

enum {
    DCQCN_ALPHA_ONE = 1 << 30, /* alpha is a fraction of this */
    DCQCN_G_SHIFT = 8,         /* g = 1/256 */
    DCQCN_F = 5,               /* stages of fast recovery */
    DCQCN_BYTES = 10000000,    /* B: a stage by bytes */
    DCQCN_AI_KBPS = 40000,     /* R_AI */
    DCQCN_HAI_KBPS = 200000,   /* R_HAI */
    DCQCN_MIN_KBPS = 10000,    /* never slower */
};
#define DCQCN_ALPHA_NS UINT64_C(55000) /* K: alpha falls without CNPs */
#define DCQCN_TIME_NS  UINT64_C(55000) /* T: a stage by time */
#define DCQCN_CNP_NS   UINT64_C(50000) /* N: of CNPs that we send */
#define DCQCN_AHEAD_NS UINT64_C(16000) /* what may leave at once */

/* All zero: never limited.  Fields other than is_limited are valid only after
 * the first CNP. */
struct dcqcn {
    bool is_limited;
    uint8_t time_stages; /* since the last CNP; stop at 255 */
    uint8_t byte_stages;
    uint32_t alpha;
    uint32_t current_kbps; /* R_C */
    uint32_t target_kbps;  /* R_T */
    uint32_t bytes;        /* of this stage */
    uint64_t alpha_ns;     /* alpha is as of then; 0: it is 1 */
    uint64_t time_ns;      /* this stage began */
    uint64_t next_ns;      /* the next packet is due */
};

/** A CNP arrived. */
void dcqcn_cnp(struct dcqcn *d, uint32_t line_kbps, uint64_t now_ns);

/**
 * Whether a packet may be sent now.  May end the limit.
 *
 * @return false when it has to wait until d->next_ns
 */
MUST_USE bool dcqcn_may_send(struct dcqcn *d, uint32_t line_kbps,
                             uint64_t now_ns);

/**
 * While limited: account for a packet that is about to be sent.
 *
 * @return the delay of the next packet, for dcqcn_undo()
 */
uint32_t dcqcn_take(struct dcqcn *d, uint32_t len_bytes, uint64_t now_ns);

/** The packet was not sent after all. */
static inline void dcqcn_undo(struct dcqcn *d, uint32_t taken_ns)
{
    d->next_ns -= taken_ns;
}

/** The packet was sent. */
void dcqcn_sent(struct dcqcn *d, uint32_t line_kbps, uint32_t len_bytes);

/** Whether a loaded state is valid. */
bool dcqcn_valid(const struct dcqcn *d);

#endif
