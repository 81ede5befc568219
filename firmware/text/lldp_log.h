/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Log lines about LLDP neighbours that appear, change or disappear.  A
 * neighbour decides how often that happens.  Therefore each port logs a limited
 * number of lines a minute, and then the number of changes that were left out.
 */
#ifndef ESSD_TEXT_LLDP_LOG_H
#define ESSD_TEXT_LLDP_LOG_H

#include "firmware/hal/log.h"
#include "net/stack/lldp.h"

enum {
    LLDP_LOG_LINES = 10,           /* most lines of each port in a period */
    LLDP_LOG_PERIOD_US = 60000000, /* a period begins with its first line */
};

struct lldp_log_port {
    uint64_t end_us; /* end of the current period; 0: no period is running */
    uint32_t logged; /* lines in the current period */
    uint32_t left_out;
};

struct lldp_log {
    struct log *log;
    struct lldp_log_port ports[NET_PORTS];
};

void lldp_log_init(struct lldp_log *lldp_log, struct log *log);

/** Log that a neighbour appeared, changed or disappeared, within the limit. */
void lldp_log_change(struct lldp_log *lldp_log, uint8_t port,
                     enum lldp_event event, const struct lldp *lldp,
                     uint64_t now_us);

/**
 * Close the periods that have ended.
 *
 * @return when to call this again at the latest; UINT64_MAX: there is no need
 */
uint64_t lldp_log_timer(struct lldp_log *lldp_log, uint64_t now_us);

#endif
