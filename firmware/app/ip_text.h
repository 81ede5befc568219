/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An IP address as text: dotted decimal, or IPv6 as RFC 5952 wants it.
 */
#ifndef ESSD_APP_IP_TEXT_H
#define ESSD_APP_IP_TEXT_H

#include "net/wire/ip_addr.h"

enum { IP_TEXT_LEN = 46 }; /* with the NUL, as INET6_ADDRSTRLEN */

struct ip_text {
    char text[IP_TEXT_LEN];
};

struct ip_text ip_text(const struct ip_addr *ip);

#endif
