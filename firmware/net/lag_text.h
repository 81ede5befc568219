/* SPDX-License-Identifier: BSD-2-Clause */
/* Link aggregation as the console and the management channel show it. */
#ifndef ESSD_NET_LAG_TEXT_H
#define ESSD_NET_LAG_TEXT_H

#include "firmware/net/drive_lag.h"

enum { LAG_MAC_TEXT_LEN = 18 }; /* with the NUL */

/** Write a MAC address into `text`. @return `text` */
const char *lag_mac_text(char text[LAG_MAC_TEXT_LEN],
                         const struct mac_addr *mac);

/** The state of a port's receive machine, in words. */
const char *lag_receive_text(const struct lacp_port *port);

/** The state of a port's mux machine, in words. */
const char *lag_mux_text(const struct lacp_port *port);

/** Print mode, members and the partner's information, on several lines. */
void lag_text(struct log *log, const struct drive_lag *lag);

#endif
