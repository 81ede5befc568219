/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * IPv6 routers: asked for when the link comes up, heard of ever after.  They
 * are gateways where none is configured, tell the link's MTU, and give a port
 * an address by its prefix where that is configured.
 * Spec: RFC 4861 section 6.3, RFC 4862 section 5.5.
 *
 * Left out: prefixes that are on the link without giving us an address (their
 * hosts are reached through the router); preferred lifetimes (we answer, so
 * that peers choose among our addresses); reachable time, retransmission timer
 * and hop limit of routers; DHCPv6, whatever their flags say.
 */
#ifndef ESSD_NET_STACK_ROUTER_H
#define ESSD_NET_STACK_ROUTER_H

#include <stdint.h>

#include "net/stack/limits.h"
#include "net/wire/ip_addr.h"

enum {
    NET_ROUTERS = 2,        /* a port; further ones are not taken note of */
    NET_AUTO_ADDRESSES = 2, /* a port, of the drive's NET_CONFIGURED */
    ROUTER_SOLICIT_US = 4000000,
    ROUTER_SOLICIT_DELAY_US = 1000000, /* at most, before the first */
    ROUTER_SOLICITS = 3,
};

struct net_router {
    struct ip_addr ip; /* all zero: none */
    uint64_t until_us;
    uint16_t vlan;
};

struct net_port_routers {
    struct net_router routers[NET_ROUTERS]; /* the first is tried first */
    uint64_t solicit_us;
    uint16_t mtu_bytes; /* of IPv6 on this link; 0: not told */
    uint8_t solicits_left;
};

#endif
