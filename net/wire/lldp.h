/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * LLDPDUs, with which a station describes itself to the other end of its cable.
 * Spec: IEEE 802.1AB-2016 clauses 8 and 9.2.7; IEEE 802.1Q annex D.2 (VLANs);
 * IEEE 802.3 clause 79.3 (MAC/PHY, frame size).
 *
 * Left out: every TLV that struct lldp has no field for is skipped, power and
 * aggregation among them, and so are management addresses other than IPv4 and
 * IPv6 and the OIDs of management addresses.
 */
#ifndef ESSD_NET_WIRE_LLDP_H
#define ESSD_NET_WIRE_LLDP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/util.h"
#include "net/wire/ip_addr.h"

enum { /* a TLV: type:7 length:9, then the value */
       LLDP_TLV_HEADER = 2,
       LLDP_TLV_MAX = 511,
       LLDP_ID_MAX = 255,
       LLDP_TEXT_MAX = 255,
       LLDP_VLAN_NAME_MAX = 32,
};

enum lldp_tlv {
    LLDP_END = 0,
    LLDP_CHASSIS_ID = 1,
    LLDP_PORT_ID = 2,
    LLDP_TTL = 3,
    LLDP_PORT_DESCRIPTION = 4,
    LLDP_SYSTEM_NAME = 5,
    LLDP_SYSTEM_DESCRIPTION = 6,
    LLDP_CAPABILITIES = 7,
    LLDP_MANAGEMENT_ADDRESS = 8,
    LLDP_ORGANISATION = 127,
};

enum { /* subtypes */
       LLDP_CHASSIS_MAC = 4,
       LLDP_PORT_MAC = 3,
       LLDP_PORT_IFNAME = 5,
       LLDP_INTERFACE_IFINDEX = 2,
};

enum { /* bits of the capabilities */
       LLDP_CAN_BRIDGE = 0x04,
       LLDP_CAN_ROUTER = 0x10,
       LLDP_CAN_STATION = 0x80, /* no other function */
};

enum { /* operational MAU type: IANA-MAU-MIB, dot3MauType */
       LLDP_MAU_10GBASE_R = 33,
       LLDP_MAU_25GBASE_R = 92,
};

enum {
    LLDP_MANAGEMENTS = 4, /* addresses kept; further ones are skipped */
    LLDP_VLANS = 4,
};

/* Text inside the parsed buffer, or the caller's when emitting. */
struct lldp_text {
    const uint8_t *bytes; /* NULL when the TLV is absent */
    uint16_t len_bytes;
};

struct lldp_id {
    struct lldp_text value; /* 1..255 bytes */
    uint8_t subtype;
};

struct lldp_management {
    struct ip_addr ip;
    uint32_t interface;
    uint8_t interface_subtype; /* 1 unknown, 2 ifIndex, 3 port number */
};

struct lldp_vlan {
    struct lldp_text name; /* 0..32 bytes */
    uint16_t vlan;
};

struct lldp {
    struct lldp_id chassis;
    struct lldp_id port;
    struct lldp_text port_description;
    struct lldp_text system_name;
    struct lldp_text system_description;
    struct lldp_management management[LLDP_MANAGEMENTS];
    struct lldp_vlan vlans[LLDP_VLANS];
    size_t len_bytes; /* of all TLVs, the end included */
    uint16_t ttl_s;   /* 0 makes the receiver remove this neighbour */
    uint16_t capabilities;
    uint16_t capabilities_enabled;
    uint16_t pvid;      /* 0 when absent */
    uint16_t max_frame; /* bytes with header and FCS; 0 when absent */
    uint16_t pmd;       /* advertised, as in the TLV */
    uint16_t mau_type;
    uint8_t autoneg; /* bit 0 supported, bit 1 enabled */
    uint8_t management_count;
    uint8_t vlan_count;
    bool has_capabilities;
    bool has_mac_phy;
};

/**
 * @param len   bytes after the Ethernet header, padding included
 * @param lldp  points into `buf`
 * @return false when the three mandatory TLVs do not come first, each once and
 *         with a valid length, or when a TLV exceeds the buffer (clause
 *         9.2.7.7.1).  An optional TLV with a wrong length is skipped, and so
 *         is the second TLV of one type.
 */
MUST_USE bool lldp_parse(struct lldp *lldp, const uint8_t *buf, size_t len);

/**
 * Write an LLDPDU.  lldp->len_bytes is ignored.
 *
 * @return its length, or 0 when it does not fit into `room` bytes
 */
size_t lldp_emit(const struct lldp *lldp, uint8_t *buf, size_t room);

#endif
