/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Log page D0h: the LLDP neighbours of the ports.  A header is followed by
 * eight places for port 0 and eight for port 1, of 512 bytes each: 8704 bytes.
 * Numbers are little-endian; texts are cut to their field and padded with
 * zeroes.
 *
 *  bytes     header
 *  1:0       version of this page, 1
 *  3:2, 5:4  number of places that follow, 16; bytes of each, 512
 *  63:16     counters of port 0, 64 bits each: frames sent, received,
 *            discarded, malformed, discarded for lack of a free place
 *            (tooManyNeighbors); neighbours aged out
 *  111:64    the same counters of port 1
 *
 *  bytes     place
 *  0, 1      1: it is in use, otherwise all its bytes are 0; port of the drive
 *  3:2       seconds until the neighbour ages out
 *  4, 5      chassis ID: subtype, length
 *  6, 7      port ID: subtype, length
 *  9:8       capabilities that are supported; 11:10: that are enabled
 *  13:12     port VLAN ID; 15:14: maximum frame size; 0: none was sent
 *  17:16     MAU type; 18: auto-negotiation status
 *  19        number of management addresses, 0 to 4
 *  87:24     chassis ID; 151:88: port ID, both as received
 *  215:152   port description
 *  279:216   system name
 *  439:280   system description
 *  503:440   management addresses, 16 bytes each, IPv4 as ::ffff:a.b.c.d
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
