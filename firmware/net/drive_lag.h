/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Link aggregation: connects the hardware's aggregation block, LACP and the
 * stack.  Port 0 of the stack and of the RNIC is the aggregate; the stack's
 * port 1 has link-local protocols only (LACP and LLDP). Why:
 * docs/decisions/0004-link-aggregation.md
 */
#ifndef ESSD_NET_DRIVE_LAG_H
#define ESSD_NET_DRIVE_LAG_H

#include "firmware/drivers/lag.h"
#include "firmware/hal/log.h"
#include "firmware/net/attachment.h"
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

/* The state that was logged last.  A peer can cause changes at any rate, so a
 * few are logged at once, then one in each interval with the number of changes
 * that were left out. */
struct drive_lag_told {
    uint8_t members;
    uint8_t active;
    bool is_up;
    uint8_t tokens;
    uint64_t refilled_us;
    uint32_t changes; /* that the log has not said */
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
    uint8_t announced; /* the same, when it was last announced to peers */
    struct drive_lag_told told;
    uint8_t follow; /* the port that becomes active at follow_us, unless the
                       active one hears an announcement, too */
    uint64_t follow_us;
    uint64_t announced_us[NET_PORTS]; /* when a port last heard one */
    uint32_t patience_us;             /* differs from drive to drive */
    uint64_t dropped[NET_PORTS]; /* raw frames of ports not received from */
};

/**
 * `lag` must be zero.  With CONFIG_LAG_OFF, nothing else here may be called
 * but drive_lag_is_on().
 *
 * @return INIT_OK, INIT_NO_DEVICE without an aggregation block, INIT_NO_ROOM
 *         when the stack has no room for LACP
 */
MUST_USE enum init_result drive_lag_init(struct drive_lag *lag,
                                         const struct drive_lag_config *config);

static inline bool drive_lag_is_on(const struct drive_lag *lag)
{
    return lag->mode != CONFIG_LAG_OFF;
}

/** How the stack is attached to the ports with an aggregate. */
struct attachment drive_lag_attachment(struct drive_lag *lag);

#endif
