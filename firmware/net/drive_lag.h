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
    /* Initialised; the stack and the log outlive the struct. */
    struct net_stack *stack;
    /* Used during drive_lag_init() only. */
    const struct config_network *network;
    /* The MAC address of the aggregate; used during drive_lag_init() only. */
    const uint8_t *mac;
    uintptr_t regs;
};

/*
 * The state that was logged last.  A peer can cause changes at any rate.
 * Therefore a few changes are logged at once, then one in each interval, with
 * the number of changes since the line before.
 */
struct drive_lag_told {
    uint8_t members;
    uint8_t active;
    bool is_up;
    uint8_t tokens;
    uint64_t refilled_us;
    uint32_t changes; /* changes that were not logged yet */
};

/* Treat the fields as read-only. */
struct drive_lag {
    struct log *log;
    struct net_stack *stack;
    struct lag lag;
    struct lacp_agent lacp; /* in use with CONFIG_LAG_LACP */
    enum config_lag mode;
    uint8_t primary;
    bool has_revert;
    bool is_up;        /* at least one member passes frames */
    uint8_t links;     /* ports that have a link, one bit each */
    uint8_t members;   /* ports that are sent to, one bit each */
    uint8_t collects;  /* ports that are received from, one bit each */
    uint8_t active;    /* the port on which raw frames leave */
    uint8_t announced; /* the active port that was last announced to peers */
    struct drive_lag_told told;
    /*
     * The port that becomes active at follow_us, unless the active port also
     * receives an announcement.
     */
    uint8_t follow;
    uint64_t follow_us;
    /* When a port last received an announcement. */
    uint64_t announced_us[NET_PORTS];
    /* How long an announcement is waited for; differs from drive to drive. */
    uint32_t patience_us;
    /* Raw frames dropped because their port is not received from. */
    uint64_t dropped[NET_PORTS];
};

/**
 * Start link aggregation.  `lag` must be zero.  With CONFIG_LAG_OFF, no other
 * function here may be called except drive_lag_is_on(), drive_lag_set() and
 * drive_lag_held_back().
 *
 * @return INIT_OK, INIT_NO_DEVICE without an aggregation block, INIT_NO_ROOM
 *         when the stack has no room for LACP
 */
MUST_USE enum init_result drive_lag_init(struct drive_lag *lag,
                                         const struct drive_lag_config *config);

/**
 * Change the settings of link aggregation, except for its mode: the LACP rate,
 * and the port that active/standby prefers.
 */
void drive_lag_set(struct drive_lag *lag, const struct config_network *network,
                   uint64_t now_us);

/**
 * The times that the other functions are given leave out `us` more
 * microseconds: see lacp_held_back().
 */
void drive_lag_held_back(struct drive_lag *lag, uint64_t us);

static inline bool drive_lag_is_on(const struct drive_lag *lag)
{
    return lag->mode != CONFIG_LAG_OFF;
}

/** How the stack is attached to the ports with an aggregate. */
struct attachment drive_lag_attachment(struct drive_lag *lag);

#endif
