/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The addresses that a configuration gives the drive, and what becomes of them
 * when it changes while the drive runs.
 */
#ifndef ESSD_NET_DRIVE_ADDRESS_H
#define ESSD_NET_DRIVE_ADDRESS_H

#include "firmware/store/config.h"
#include "net/stack/stack.h"

/** In this order: IPv4 of both ports, IPv6 of both ports, the further ones.
 * Those that are not configured, or come by DHCP, are zero. */
void drive_address_list(const struct config *config,
                        struct net_address_config list[NET_CONFIGURED]);

bool drive_address_is_same(const struct net_address_config *a,
                           const struct net_address_config *b);

/**
 * Forget what is not in `after` any more.  The connections of an address that
 * goes are lost, as when a cable is pulled.
 */
void drive_address_remove(
    struct net_stack *stack, const struct config *before,
    const struct net_address_config after[NET_CONFIGURED]);

/**
 * Take those of `list` that are not there.
 *
 * @return false when one of them found no place, or is there by other means
 */
MUST_USE bool drive_address_add(
    struct net_stack *stack,
    const struct net_address_config list[NET_CONFIGURED], uint64_t now_us);

#endif
