/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Log page D0h: the LLDP neighbours of the ports.
 * Reference: docs/nvme.md, "Log pages of our own"
 */
#ifndef ESSD_VENDOR_NEIGHBOUR_LOG_H
#define ESSD_VENDOR_NEIGHBOUR_LOG_H

#include "net/stack/lldp.h"

enum {
    NEIGHBOUR_LOG_PART = 512, /* bytes of the header, and of each place */
    NEIGHBOUR_LOG_PLACES = NET_PORTS * LLDP_NEIGHBOURS,
    NEIGHBOUR_LOG_LEN = NEIGHBOUR_LOG_PART * (1 + NEIGHBOUR_LOG_PLACES),
};

/**
 * Write one part of the page: the header (0) or a place (1 to
 * NEIGHBOUR_LOG_PLACES), into NEIGHBOUR_LOG_PART bytes at `page`.
 */
void neighbour_log_build(const struct lldp_agent *agent, uint64_t now_us,
                         uint32_t part, uint8_t *page);

#endif
