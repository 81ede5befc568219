/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An IPv4 address of 169.254/16 for a port that nobody gives one.
 *
 *  + candidates follow from the port's MAC, so that a drive has the same
 * address from boot to boot; the stack probes, announces and defends it
 *  + taken by somebody else, or lost to one who claims it twice: the next one,
 *    after ten of these at most one a minute
 *
 * Spec: RFC 3927 sections 2.1 to 2.5.
 */
#ifndef ESSD_NET_STACK_IPV4LL_H
#define ESSD_NET_STACK_IPV4LL_H

#include "net/stack/stack.h"

enum {
    IPV4LL_MAX_CONFLICTS = 10,
    IPV4LL_WAIT_US = 60000000, /* RATE_LIMIT_INTERVAL; or for a free address */
};

/* Opaque: its owner calls the functions. */
struct ipv4ll {
    struct net_stack *stack;
    uint64_t due_us;    /* of the next candidate */
    uint32_t candidate; /* number of the present one */
    uint32_t conflicts; /* since the last one that could be used */
    uint16_t vlan;
    uint8_t port;
    bool is_wanted;
    int local; /* own address, or -1 */
};

void ipv4ll_init(struct ipv4ll *ll, struct net_stack *stack, uint8_t port,
                 uint16_t vlan);

/** Have an address from now on, or none any more. */
void ipv4ll_start(struct ipv4ll *ll, uint64_t now_us);
void ipv4ll_stop(struct ipv4ll *ll);

/**
 * Do what is due, behind net_stack_input() and net_stack_timer().
 *
 * @return when to call it again, UINT64_MAX for never
 */
uint64_t ipv4ll_timer(struct ipv4ll *ll, uint64_t now_us);

#endif
