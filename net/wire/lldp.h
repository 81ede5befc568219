/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * LLDPDUs: what a station says about itself to the other end of its cable.
 * Spec: IEEE 802.1AB-2016 clauses 8 and 9.2.7; IEEE 802.1Q annex D.2 (VLANs);
 * IEEE 802.3 clause 79.3 (MAC/PHY, frame size).
 *
 * Left out: TLVs other than those of struct lldp are skipped; management
 * addresses other than IPv4 and IPv6, and their OIDs; power and aggregation.
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
       LLDP_CAN_STATION = 0x80, /* and nothing else */
};

enum { /* operational MAU type: IANA-MAU-MIB, dot3MauType */
       LLDP_MAU_10GBASE_R = 33,
       LLDP_MAU_25GBASE_R = 92,
};

enum {
    LLDP_MANAGEMENTS = 4, /* more of them are skipped */
    LLDP_VLANS = 4,
};

/* A piece of the buffer that was parsed, or of whoever emits. */
struct lldp_text {
    const uint8_t *bytes; /* NULL: no such TLV */
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
    uint16_t ttl_s;   /* 0: forget me */
    uint16_t capabilities;
    uint16_t capabilities_enabled;
    uint16_t pvid;      /* 0: not said */
    uint16_t max_frame; /* bytes with header and FCS; 0: not said */
    uint16_t pmd;       /* advertised, as in the TLV */
    uint16_t mau_type;
    uint8_t autoneg; /* bit 0 supported, bit 1 enabled */
    uint8_t management_count;
    uint8_t vlan_count;
    bool has_capabilities;
    bool has_mac_phy;
};

/**
 * @param len   what follows Ethernet's header, padding and all
 * @param lldp  points into `buf`
 * @return false when the three mandatory TLVs do not come first, each once and
 *         of a right length, or a TLV runs over the end (clause 9.2.7.7.1).
 *         Optional TLVs of a wrong length, and a second one of a kind, are
 *         skipped.
 */
MUST_USE bool lldp_parse(struct lldp *lldp, const uint8_t *buf, size_t len);

/**
 * Write an LLDPDU; `len_bytes` is not looked at.
 *
 * @return its length, 0 when it does not fit `room`
 */
size_t lldp_emit(const struct lldp *lldp, uint8_t *buf, size_t room);

#endif
