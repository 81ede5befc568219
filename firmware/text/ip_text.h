/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * IP addresses as text: dotted decimal, or IPv6 in the form of RFC 5952.
 */
#ifndef ESSD_TEXT_IP_TEXT_H
#define ESSD_TEXT_IP_TEXT_H

#include "lib/util.h"
#include "net/wire/ip_addr.h"

enum { IP_TEXT_LEN = 46 }; /* length with the NUL, as INET6_ADDRSTRLEN */

struct ip_text {
    char text[IP_TEXT_LEN];
};

struct ip_text ip_text(const struct ip_addr *ip);

/**
 * Parse an address: RFC 4291 section 2.2, forms 1 and 2.
 *
 * @param len  number of characters of `text` to parse
 * @return false when it is no address; IPv4-mapped IPv6 addresses and IPv6
 *         addresses that end in dotted decimal are refused
 */
MUST_USE bool ip_text_parse(struct ip_addr *ip, const char *text, size_t len);

#endif
