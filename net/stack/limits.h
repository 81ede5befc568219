/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sizes of the control-traffic stack, from the data sheet.
 */
#ifndef ESSD_NET_STACK_LIMITS_H
#define ESSD_NET_STACK_LIMITS_H

enum {
    NET_PORTS = 2,
    NET_CONFIGURED = 8, /* own addresses besides the ports' link-local ones */
    NET_ADDRESSES = NET_CONFIGURED + NET_PORTS, /* all own addresses */
    NET_NEIGHBOURS = 1024, /* same size and indices as the RNIC's table */
    NET_NEIGH_BUCKETS = 1024,
    NET_UDP_BINDINGS = 8,
    NET_GROUPS = 2, /* IP groups that services join */
    /* Groups that a port receives. */
    NET_MULTICAST = 5 + NET_ADDRESSES + NET_GROUPS,
    NET_MTU_MAX = 9000,
    NET_FRAME_MAX = NET_MTU_MAX + 18, /* Ethernet and a tag, no FCS */
};

#endif
