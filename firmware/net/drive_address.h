/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The addresses of a configuration, and how they change while the drive runs.
 */
#ifndef ESSD_NET_DRIVE_ADDRESS_H
#define ESSD_NET_DRIVE_ADDRESS_H

#include "firmware/store/config.h"
#include "net/stack/stack.h"

/**
 * List the addresses of a configuration: IPv4 of both ports, IPv6 of both
 * ports, then the further ones.  Addresses that are not configured or come by
 * DHCP are zero.
 */
void drive_address_list(const struct config *config,
                        struct net_address_config list[NET_CONFIGURED]);

bool drive_address_is_same(const struct net_address_config *a,
                           const struct net_address_config *b);

/**
 * Remove the addresses that `after` does not have.  Their connections are lost,
 * as if a cable had been pulled.
 */
void drive_address_remove(
    struct net_stack *stack, const struct config *before,
    const struct net_address_config after[NET_CONFIGURED]);

/**
 * Add the addresses of `list` that the stack does not have.
 *
 * @return false when there was no room for an address, or when the stack has
 *         one of them from SLAAC or DHCP
 */
MUST_USE bool drive_address_add(
    struct net_stack *stack,
    const struct net_address_config list[NET_CONFIGURED], uint64_t now_us);

#endif
