/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Slow protocols: the LACPDU, and the marker PDU of link aggregation.  Both
 * follow an Ethernet header of type 0x8809, sent to 01:80:c2:00:00:02.
 * Spec: IEEE 802.1AX-2008 clauses 5.4.2 and 5.5.2 (IEEE 802.3-2005 clause 43).
 *
 * A receiver checks subtype and lengths, but neither version nor TLV types, so
 * that it can read the common part of later versions (clause 5.4.12).
 *
 * Left out: what version 2 adds after the first 110 bytes.
 */
#ifndef ESSD_NET_WIRE_LACP_H
#define ESSD_NET_WIRE_LACP_H

#include "net/wire/eth.h"

enum { /* byte offsets in an LACPDU; big-endian */
       SLOW_SUBTYPE = 0,
       SLOW_VERSION = 1,
       LACP_ACTOR = 2,      /* type, length, struct lacp_info, 3 reserved */
       LACP_PARTNER = 22,   /* the same fields as LACP_ACTOR */
       LACP_COLLECTOR = 42, /* type, length, delay:16, 12 reserved */
       LACP_TERMINATOR = 58,
       SLOW_LEN = 110, /* of all slow protocols' PDUs here */
};

enum { /* byte offsets in a marker PDU */
       MARKER_TLV = 2,
       MARKER_PORT = 4,
       MARKER_SYSTEM = 6,
       MARKER_TRANSACTION = 12,
       MARKER_TERMINATOR = 18,
};

enum {
    SLOW_LACP = 1, /* subtypes */
    SLOW_MARKER = 2,
    SLOW_VERSION_1 = 1,
};

enum lacp_state_bits {
    LACP_ACTIVITY = 0x01, /* active: sends without being asked */
    LACP_TIMEOUT = 0x02,  /* short: asks for a LACPDU every second */
    LACP_AGGREGATION = 0x04,
    LACP_SYNCHRONIZATION = 0x08,
    LACP_COLLECTING = 0x10,
    LACP_DISTRIBUTING = 0x20,
    LACP_DEFAULTED = 0x40, /* its partner information is a default */
    LACP_EXPIRED = 0x80,
};

/* The information of a LACPDU about one end of a link. */
struct lacp_info {
    uint16_t system_priority;
    struct mac_addr system;
    uint16_t key;
    uint16_t port_priority;
    uint16_t port;
    uint8_t state; /* enum lacp_state_bits */
};

struct lacp {
    struct lacp_info actor; /* the sender */
    struct lacp_info partner;
    uint16_t max_delay; /* of the collector, in units of 10 us */
};

struct marker {
    bool is_response;
    uint16_t port; /* port, system and transaction identify the request */
    struct mac_addr system;
    uint32_t transaction;
};

/** 01:80:c2:00:00:02, which no bridge forwards. */
extern const struct mac_addr slow_group;

/** @return false when cut short, of another subtype, or with a wrong length */
MUST_USE bool lacp_parse(struct lacp *lacp, const uint8_t *buf, size_t len);

/** Write SLOW_LEN bytes. */
void lacp_emit(const struct lacp *lacp, uint8_t *buf);

/** @return false when cut short, or neither a marker nor its response */
MUST_USE bool marker_parse(struct marker *marker, const uint8_t *buf,
                           size_t len);

/** Write SLOW_LEN bytes. */
void marker_emit(const struct marker *marker, uint8_t *buf);

#endif
