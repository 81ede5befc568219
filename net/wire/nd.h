/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * IPv6 neighbour discovery: four kinds of ICMPv6 message and their options.
 * Spec: RFC 4861 sections 4.1 to 4.4, 4.6.
 *
 * Offsets count from the ICMPv6 header.  parse relies on icmpv6_parse() for
 * the checksum; emit writes it.
 *
 * Left out: Redirect; options other than link-layer address, prefix and MTU
 * are skipped.
 */
#ifndef ESSD_NET_WIRE_ND_H
#define ESSD_NET_WIRE_ND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/util.h"
#include "net/wire/eth.h"
#include "net/wire/ip_addr.h"

enum {
    ND_ROUTER_SOLICIT = 133,
    ND_ROUTER_ADVERT = 134,
    ND_NEIGHBOR_SOLICIT = 135,
    ND_NEIGHBOR_ADVERT = 136,
    ND_REDIRECT = 137,
};

/* A message with any other hop limit has crossed a router: drop it. */
enum { ND_HOP_LIMIT = 255 };

enum {               /* neighbour solicitation and advertisement */
       ND_FLAGS = 4, /* R:1 S:1 O:1 reserved:29, advertisement only */
       ND_TARGET = 8,
       ND_NEIGHBOR_OPTIONS = 24,
       ND_NEIGHBOR_MAX_LEN = 32,
};

enum { /* router solicitation */
       ND_RS_OPTIONS = 8,
       ND_RS_MAX_LEN = 16,
};

enum { /* router advertisement */
       ND_RA_HOP_LIMIT = 4,
       ND_RA_FLAGS = 5, /* M:1 O:1 reserved:6 */
       ND_RA_LIFETIME = 6,
       ND_RA_REACHABLE = 8,
       ND_RA_RETRANS = 12,
       ND_RA_OPTIONS = 16,
       ND_RA_MAX_PREFIXES = 4, /* prefixes kept; further ones are skipped */
};

enum { /* options: type, length in units of 8 bytes */
       ND_OPT_TYPE = 0,
       ND_OPT_LENGTH = 1,
       ND_OPT_LLADDR = 2,
       ND_OPT_MTU = 4,
       ND_OPT_PREFIX_LEN = 2,
       ND_OPT_PREFIX_FLAGS = 3, /* L:1 A:1 reserved:6 */
       ND_OPT_PREFIX_VALID = 4,
       ND_OPT_PREFIX_PREFERRED = 8,
       ND_OPT_PREFIX = 16,
};

enum nd_option {
    ND_OPTION_SOURCE_LLADDR = 1,
    ND_OPTION_TARGET_LLADDR = 2,
    ND_OPTION_PREFIX = 3,
    ND_OPTION_MTU = 5,
};

struct nd_neighbor {
    uint8_t type; /* ND_NEIGHBOR_SOLICIT or ND_NEIGHBOR_ADVERT */
    bool router;  /* R, S and O flags, of an advertisement only */
    bool solicited;
    bool override;
    bool has_lladdr; /* of the source (solicitation) or the target
                        (advertisement) */
    struct mac_addr lladdr;
    struct ip_addr target;
};

struct nd_router_solicit {
    bool has_lladdr;
    struct mac_addr lladdr;
};

struct nd_prefix {
    struct ip_addr prefix;
    uint32_t valid_s; /* ffffffffh: without end */
    uint32_t preferred_s;
    uint8_t prefix_bits; /* 0..128 */
    bool on_link;
    bool autonomous;
};

struct nd_router_advert {
    /* hop_limit, reachable_ms, retrans_ms, mtu: 0 when not specified. */
    uint8_t hop_limit;
    bool managed;
    bool other;
    uint16_t router_lifetime_s; /* 0 if it is not a default router */
    uint32_t reachable_ms;
    uint32_t retrans_ms;
    uint32_t mtu_bytes;
    bool has_lladdr;
    struct mac_addr lladdr;
    uint8_t prefix_count;
    struct nd_prefix prefixes[ND_RA_MAX_PREFIXES];
};

/** The solicited-node multicast address of `ip` (RFC 4291 section 2.7.1). */
struct ip_addr nd_solicited_node(const struct ip_addr *ip);

/** The Ethernet group of an IPv6 multicast address (RFC 2464 section 7). */
struct mac_addr nd_multicast_mac(const struct ip_addr *group);

/** The link-local address of a MAC, by EUI-64 (RFC 4291 appendix A). */
struct ip_addr nd_link_local(const struct mac_addr *mac);

/*
 * Each parse returns false for another message type, for a code other than 0,
 * and when the message or an option is cut short or an option's length is 0.
 */
/** Returns false also for a multicast or an IPv4-mapped target. */
MUST_USE bool nd_neighbor_parse(struct nd_neighbor *nd, const uint8_t *buf,
                                size_t len);
MUST_USE bool nd_router_solicit_parse(struct nd_router_solicit *rs,
                                      const uint8_t *buf, size_t len);
MUST_USE bool nd_router_advert_parse(struct nd_router_advert *ra,
                                     const uint8_t *buf, size_t len);

/** @return bytes written, up to ND_NEIGHBOR_MAX_LEN */
size_t nd_neighbor_emit(const struct nd_neighbor *nd, const struct ip_addr *src,
                        const struct ip_addr *dst, uint8_t *buf);

/** @return bytes written, up to ND_RS_MAX_LEN */
size_t nd_router_solicit_emit(const struct nd_router_solicit *rs,
                              const struct ip_addr *src,
                              const struct ip_addr *dst, uint8_t *buf);

#endif
