/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The addresses that a configuration gives the drive, and what becomes of them
 * when it changes while the drive runs.
 */
#ifndef ESSD_APP_DRIVE_ADDRESS_H
#define ESSD_APP_DRIVE_ADDRESS_H

#include "firmware/store/config.h"
#include "net/stack/stack.h"

/** In this order: IPv4 of both ports, IPv6 of both ports, the further ones.
 * Those that are not configured, or come by DHCP, are zero. */
void drive_address_list(const struct config *config,
                        struct net_address_config list[NET_CONFIGURED]);

bool drive_address_is_same(const struct net_address_config *a,
                           const struct net_address_config *b);

/**
 * Forget what is not in `after` any more, take what was not in `before`.  The
 * connections of an address that goes are lost, as when a cable is pulled.
 */
void drive_address_change(struct net_stack *stack, const struct config *before,
                          const struct config *after, uint64_t now_us);

#endif
