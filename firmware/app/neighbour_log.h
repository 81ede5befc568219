/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Log page C0h: what LLDP knows of the other end of each cable.
 * Reference: docs/nvme.md, "Log pages of our own"
 */
#ifndef ESSD_APP_NEIGHBOUR_LOG_H
#define ESSD_APP_NEIGHBOUR_LOG_H

#include "net/stack/lldp.h"

enum {
    NEIGHBOUR_LOG_PART = 512, /* the header, then each place */
    NEIGHBOUR_LOG_PLACES = NET_PORTS * LLDP_NEIGHBOURS,
    NEIGHBOUR_LOG_LEN = NEIGHBOUR_LOG_PART * (1 + NEIGHBOUR_LOG_PLACES),
};

/** Write part 0..NEIGHBOUR_LOG_PLACES: NEIGHBOUR_LOG_PART bytes of `page`. */
void neighbour_log_build(const struct lldp_agent *agent, uint64_t now_us,
                         uint32_t part, uint8_t *page);

#endif
