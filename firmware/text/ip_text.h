/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An IP address as text: dotted decimal, or IPv6 as RFC 5952 wants it.
 */
#ifndef ESSD_TEXT_IP_TEXT_H
#define ESSD_TEXT_IP_TEXT_H

#include "lib/util.h"
#include "net/wire/ip_addr.h"

enum { IP_TEXT_LEN = 46 }; /* with the NUL, as INET6_ADDRSTRLEN */

struct ip_text {
    char text[IP_TEXT_LEN];
};

struct ip_text ip_text(const struct ip_addr *ip);

/**
 * The other way round: RFC 4291 section 2.2, forms 1 and 2.
 *
 * @param len  characters of `text` that count
 * @return false when it is no address; an IPv4 address does not come as an IPv6
 *         one, nor with dots at the end of one
 */
MUST_USE bool ip_text_parse(struct ip_addr *ip, const char *text, size_t len);

#endif
