/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * IPv4 link-local addresses (169.254/16) for a port without another address.
 *
 *  + Candidates are computed from the port's MAC, so that a drive has the same
 *    address after each boot.  The stack probes, announces and defends it.
 *  + If another host has the address, or claims it a second time, the next
 *    candidate is tried; after ten conflicts at most one a minute.
 *
 * Spec: RFC 3927 sections 2.1 to 2.5.
 */
#ifndef ESSD_NET_STACK_IPV4LL_H
#define ESSD_NET_STACK_IPV4LL_H

#include "net/stack/stack.h"

enum {
    IPV4LL_MAX_CONFLICTS = 10,
    /* RATE_LIMIT_INTERVAL; also the retry when the drive has no free address.
     */
    IPV4LL_WAIT_US = 60000000,
};

/* Opaque. */
struct ipv4ll {
    struct net_stack *stack;
    uint64_t due_us;    /* when to try the next candidate */
    uint32_t candidate; /* number of the present candidate */
    uint32_t conflicts; /* since the last usable candidate */
    uint16_t vlan;
    uint8_t port;
    bool is_wanted;
    int local; /* index of the own address, or -1 */
};

void ipv4ll_init(struct ipv4ll *ll, struct net_stack *stack, uint8_t port,
                 uint16_t vlan);

/** Begin to acquire an address; give it up. */
void ipv4ll_start(struct ipv4ll *ll, uint64_t now_us);
void ipv4ll_stop(struct ipv4ll *ll);

/**
 * Do what is due.  Call it after net_stack_input() and net_stack_timer().
 *
 * @return when to call it again, UINT64_MAX for never
 */
uint64_t ipv4ll_timer(struct ipv4ll *ll, uint64_t now_us);

#endif
