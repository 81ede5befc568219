/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Log lines about LLDP neighbours that appear, change or go.  A neighbour
 * decides how often that happens, so each port logs a limited number of lines
 * a minute and then says how many changes it left out.
 */
#ifndef ESSD_TEXT_LLDP_LOG_H
#define ESSD_TEXT_LLDP_LOG_H

#include "firmware/hal/log.h"
#include "net/stack/lldp.h"

enum {
    LLDP_LOG_LINES = 10,           /* of each port in a period */
    LLDP_LOG_PERIOD_US = 60000000, /* begins with the first line */
};

struct lldp_log_port {
    uint64_t end_us; /* of the current period; 0 outside one */
    uint32_t logged; /* lines in the current period */
    uint32_t left_out;
};

struct lldp_log {
    struct log *log;
    struct lldp_log_port ports[NET_PORTS];
};

void lldp_log_init(struct lldp_log *lldp_log, struct log *log);

/** Log that a neighbour appeared, changed or went, within the limit. */
void lldp_log_change(struct lldp_log *lldp_log, uint8_t port,
                     enum lldp_event event, const struct lldp *lldp,
                     uint64_t now_us);

/**
 * Close the periods that have ended.
 *
 * @return when to call it again at the latest, UINT64_MAX: not needed
 */
uint64_t lldp_log_timer(struct lldp_log *lldp_log, uint64_t now_us);

#endif
