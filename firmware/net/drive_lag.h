/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The two ports as one: ties the aggregation block, LACP and the stack.  With
 * it, the stack's and the RNIC's port 0 is the aggregate, and nothing is on
 * port 1 but what belongs to a link: LACP, LLDP.
 * Why: docs/decisions/0004-link-aggregation.md
 */
#ifndef ESSD_NET_DRIVE_LAG_H
#define ESSD_NET_DRIVE_LAG_H

#include "firmware/drivers/lag.h"
#include "firmware/hal/log.h"
#include "firmware/store/config.h"
#include "net/stack/lacp.h"
#include "net/stack/stack.h"

struct drive_lag_config {
    struct log *log;
    struct net_stack *stack;              /* set up; these two stay */
    const struct config_network *network; /* these: during init() only */
    const uint8_t *mac;                   /* the aggregate's */
    uintptr_t regs;
};

/* What the log was told last.  Peers make changes: told are so many at once,
 * then one in each interval, and how many have passed meanwhile. */
struct drive_lag_told {
    uint8_t members;
    uint8_t active;
    bool is_up;
    uint8_t tokens;
    uint64_t refilled_us;
    uint32_t changes; /* not told */
};

/* Treat as opaque, but for reading. */
struct drive_lag {
    struct log *log;
    struct net_stack *stack;
    struct lag lag;
    struct lacp_agent lacp; /* with CONFIG_LAG_LACP */
    enum config_lag mode;
    uint8_t primary;
    bool has_revert;
    bool is_up;        /* one member at least passes frames */
    uint8_t links;     /* these two: a bit a port */
    uint8_t members;   /* sent to */
    uint8_t collects;  /* received from */
    uint8_t active;    /* where raw frames leave */
    uint8_t announced; /* the same, as the network was told */
    struct drive_lag_told told;
    uint8_t follow; /* the port to go to at follow_us, unless... */
    uint64_t follow_us;
    uint64_t announced_us[NET_PORTS]; /* ...the other one hears it, too */
    uint32_t patience_us;             /* differs from drive to drive */
    uint64_t dropped[NET_PORTS]; /* raw frames of ports not received from */
};

/**
 * `lag` must be zero.  With CONFIG_LAG_OFF, nothing else here may be called
 * but drive_lag_is_on().
 *
 * @return false when there is no such block
 */
MUST_USE bool drive_lag_init(struct drive_lag *lag,
                             const struct drive_lag_config *config);

static inline bool drive_lag_is_on(const struct drive_lag *lag)
{
    return lag->mode != CONFIG_LAG_OFF;
}

/** A port's link came up or went down. */
void drive_lag_link(struct drive_lag *lag, uint8_t port, bool is_up,
                    uint64_t now_us);

/** Whether a frame belongs to its link alone: to 01:80:c2:00:00:0x. */
bool drive_lag_is_of_link(const uint8_t *frame);

/**
 * A raw frame that came in by `port`.
 *
 * @param len  14 and more
 * @param at   the stack's port that it is for
 * @return false when it is to be dropped
 */
MUST_USE bool drive_lag_accept(struct drive_lag *lag, uint8_t port,
                               const uint8_t *frame, size_t len, uint8_t *at,
                               uint64_t now_us);

/** What is due. @return when to call it again at the latest */
uint64_t drive_lag_step(struct drive_lag *lag, uint64_t now_us);

#endif
