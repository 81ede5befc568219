/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * DCQCN's reaction point: it limits the rate of a queue pair after congestion
 * notifications (CNPs).  The source is Zhu et al., "Congestion Control for
 * Large-Scale RDMA Deployments", SIGCOMM 2015, sections 3.1 (algorithm) and 5
 * (parameters).
 *
 * Each queue pair has a current rate R_C, a target rate R_T and an estimate a
 * (alpha).  At the first CNP, R_C is the line rate and a is 1.
 *
 *   at a CNP            R_T = R_C;  R_C = R_C (1 - a/2);  a = (1 - g) a + g;
 *                       t = b = 0
 *   K without a CNP     a = (1 - g) a
 *   a stage ends        after each time T (t increases) and after each B bytes
 *                       sent (b increases):
 *     max(t, b) < F     R_C = (R_T + R_C) / 2             fast recovery
 *     min(t, b) > F     R_T = R_T + (min(t, b) - F) R_HAI;
 *                       R_C = (R_T + R_C) / 2             hyper increase
 *     else              R_T = R_T + R_AI;
 *                       R_C = (R_T + R_C) / 2             additive increase
 *
 * When R_C reaches 127/128 of the line rate, the limit is removed until the
 * next CNP.  A packet of n bits delays the next one by n / R_C.  A packet that
 * is due within DCQCN_AHEAD_NS is sent at once; unused sending time expires
 * after as long.
 *
 * Changes that depend on time are computed when a packet is about to be sent,
 * so that a queue pair without a limit or without packets costs nothing.
 *
 * Left out: a limit on a flow's initial rate, gains other than the paper's.
 */
#ifndef ESSD_NET_ROCE_DCQCN_H
#define ESSD_NET_ROCE_DCQCN_H

#include "lib/util.h"

enum {
    DCQCN_ALPHA_ONE = 1 << 30, /* the value of alpha that stands for 1 */
    DCQCN_G_SHIFT = 8,         /* g = 1/256 */
    DCQCN_F = 5,               /* number of stages of fast recovery */
    DCQCN_BYTES = 10000000,    /* B: bytes of one stage of the byte counter */
    DCQCN_AI_KBPS = 40000,     /* R_AI: step of additive increase */
    DCQCN_HAI_KBPS = 200000,   /* R_HAI: step of hyper increase */
    DCQCN_MIN_KBPS = 10000,    /* lowest rate */
};
#define DCQCN_ALPHA_NS UINT64_C(55000) /* K: interval in which alpha falls */
#define DCQCN_TIME_NS  UINT64_C(55000) /* T: one stage of the timer */
#define DCQCN_CNP_NS   UINT64_C(50000) /* N: interval between sent CNPs */
#define DCQCN_AHEAD_NS UINT64_C(16000) /* how far a burst may be ahead */

/* All zero for a queue pair without a limit.  The fields after is_limited are
 * valid only after the first CNP. */
struct dcqcn {
    bool is_limited;
    uint8_t time_stages; /* stages since the last CNP, at most 255 */
    uint8_t byte_stages;
    uint32_t alpha;
    uint32_t current_kbps; /* R_C: present rate */
    uint32_t target_kbps;  /* R_T: rate to which R_C returns after a CNP */
    uint32_t bytes;        /* bytes sent in this stage of the byte counter */
    uint64_t alpha_ns; /* time of the last update of alpha; 0 if alpha is 1 */
    uint64_t time_ns;  /* begin of this stage of the timer */
    uint64_t next_ns;  /* earliest time of the next packet */
};

/** A CNP has arrived: lower the rate. */
void dcqcn_cnp(struct dcqcn *d, uint32_t line_kbps, uint64_t now_ns);

/**
 * Whether a packet may be sent now.  This call ends the limit when the rate has
 * risen to that of the line.
 *
 * @return false when it has to wait until d->next_ns
 */
MUST_USE bool dcqcn_may_send(struct dcqcn *d, uint32_t line_kbps,
                             uint64_t now_ns);

/**
 * Account for a packet that is about to be sent by a limited queue pair.
 *
 * @return the delay of the next packet, for dcqcn_undo()
 */
uint32_t dcqcn_take(struct dcqcn *d, uint32_t len_bytes, uint64_t now_ns);

/** Undo dcqcn_take() for a packet that the port did not take. */
static inline void dcqcn_undo(struct dcqcn *d, uint32_t taken_ns)
{
    d->next_ns -= taken_ns;
}

/** Count a packet that the port has taken. */
void dcqcn_sent(struct dcqcn *d, uint32_t line_kbps, uint32_t len_bytes);

/** Whether a loaded state is valid. */
bool dcqcn_valid(const struct dcqcn *d);

#endif
