/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * DHCP messages for IPv4 over Ethernet, as much as a client needs.
 * Spec: RFC 2131 section 2; RFC 2132; RFC 3396 (options in pieces).
 *
 * Left out: BOOTP messages without a message type; siaddr and giaddr; sname and
 * file, unless option overload says that they hold options.  Options that
 * struct dhcp does not name are skipped.  Of a list of addresses only the first
 * is kept.  A split option that is not a list is refused.
 */
#ifndef ESSD_NET_WIRE_DHCP_H
#define ESSD_NET_WIRE_DHCP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/util.h"
#include "net/wire/eth.h"
#include "net/wire/ip_addr.h"

enum { /* byte offsets; fields of more than one byte big-endian */
       DHCP_OP = 0,
       DHCP_HTYPE = 1, /* 1: Ethernet */
       DHCP_HLEN = 2,
       DHCP_HOPS = 3,
       DHCP_XID = 4,
       DHCP_SECS = 8,
       DHCP_FLAGS = 10, /* B:1 reserved:15 */
       DHCP_CIADDR = 12,
       DHCP_YIADDR = 16,
       DHCP_SIADDR = 20,
       DHCP_GIADDR = 24,
       DHCP_CHADDR = 28, /* 16 bytes */
       DHCP_SNAME = 44,
       DHCP_FILE = 108,
       DHCP_COOKIE = 236,
       DHCP_OPTIONS = 240,
       DHCP_LEN_MIN = 300, /* of a sent message: BOOTP relays expect it */
};

enum {
    DHCP_SERVER_PORT = 67,
    DHCP_CLIENT_PORT = 68,
};

enum dhcp_type {
    DHCP_DISCOVER = 1,
    DHCP_OFFER = 2,
    DHCP_REQUEST = 3,
    DHCP_DECLINE = 4,
    DHCP_ACK = 5,
    DHCP_NAK = 6,
    DHCP_RELEASE = 7,
    DHCP_INFORM = 8,
};

/* The options that struct dhcp holds. */
enum dhcp_option {
    DHCP_OPTION_PAD = 0,
    DHCP_OPTION_MASK = 1,
    DHCP_OPTION_ROUTER = 3,
    DHCP_OPTION_HOST_NAME = 12,
    DHCP_OPTION_MTU = 26,
    DHCP_OPTION_NTP = 42,
    DHCP_OPTION_REQUESTED = 50,
    DHCP_OPTION_LEASE = 51,
    DHCP_OPTION_OVERLOAD = 52,
    DHCP_OPTION_TYPE = 53,
    DHCP_OPTION_SERVER = 54,
    DHCP_OPTION_PARAMETERS = 55,
    DHCP_OPTION_MAX_LEN = 57,
    DHCP_OPTION_T1 = 58,
    DHCP_OPTION_T2 = 59,
    DHCP_OPTION_CLIENT = 61,
    DHCP_OPTION_END = 255,
};

#define DHCP_FOREVER UINT32_MAX /* a lease time that never ends */

struct dhcp_bytes {
    const uint8_t *bytes; /* the caller's, or inside the parsed buffer */
    uint8_t len_bytes;    /* 0 if the option is absent */
};

struct dhcp {
    uint8_t type; /* enum dhcp_type */
    bool is_reply;
    bool is_broadcast; /* the reply has to be broadcast */
    uint16_t secs;
    uint32_t xid;
    struct ip_addr ciaddr, yiaddr; /* ::ffff:a.b.c.d; 0.0.0.0 for none */
    struct mac_addr chaddr;

    /* Options; zero means that the option is absent. */
    struct ip_addr server, requested, router, ntp_server;
    uint32_t lease_s, t1_s, t2_s;
    uint16_t mtu_bytes; /* 68.. */
    uint16_t max_len_bytes;
    uint8_t prefix_bits; /* length of the subnet mask */
    bool has_mask;
    struct dhcp_bytes host_name;
    struct dhcp_bytes client;     /* type and identifier */
    struct dhcp_bytes parameters; /* enum dhcp_option */
};

/**
 * @param len  of the message; padding may follow the end option
 * @return false when the message is cut short or not for Ethernet, lacks the
 *         cookie, the message type or the end option, has an option twice or
 *         with a wrong length, or a subnet mask with holes
 */
MUST_USE bool dhcp_parse(struct dhcp *dhcp, const uint8_t *buf, size_t len);

/** @return bytes written, DHCP_LEN_MIN or more; 0 when `room` is too small */
MUST_USE size_t dhcp_emit(const struct dhcp *dhcp, uint8_t *buf, size_t room);

#endif
