/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * IPv6 routers: solicited when the link comes up, and learnt from their
 * advertisements.  A router serves as gateway unless one is configured, sets
 * the link's MTU, and its prefixes give a port addresses if SLAAC is on.
 * Spec: RFC 4861 section 6.3, RFC 4862 section 5.5.
 *
 * Left out: on-link prefixes without an address of ours (their hosts are
 * reached through the router); preferred lifetimes (the drive only answers, so
 * peers choose among its addresses); the routers' reachable time,
 * retransmission timer and hop limit; DHCPv6.
 */
#ifndef ESSD_NET_STACK_ROUTER_H
#define ESSD_NET_STACK_ROUTER_H

#include <stdint.h>

#include "net/stack/limits.h"
#include "net/wire/ip_addr.h"

enum {
    NET_ROUTERS = 2,        /* kept for each port; others are ignored */
    NET_AUTO_ADDRESSES = 2, /* for each port, out of NET_CONFIGURED */
    ROUTER_SOLICIT_US = 4000000,
    ROUTER_SOLICIT_DELAY_US = 1000000, /* longest wait before the first one */
    ROUTER_SOLICITS = 3,
};

struct net_router {
    struct ip_addr ip; /* all zero if the entry is unused */
    uint64_t until_us;
    uint16_t vlan;
};

struct net_port_routers {
    struct net_router routers[NET_ROUTERS]; /* in order of preference */
    uint64_t solicit_us;
    uint16_t mtu_bytes; /* IPv6 MTU of this link; 0 if unknown */
    uint8_t solicits_left;
};

#endif
