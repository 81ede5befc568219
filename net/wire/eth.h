/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ethernet II header, with at most one 802.1Q tag.
 * Spec: IEEE 802.3 clause 3.2, IEEE 802.1Q clause 9.6.
 *
 * Left out: 802.3 length fields (LLC) arrive as a `type` below 0x600;
 * stacked tags (802.1ad) arrive as the type of the second tag.
 */
#ifndef ESSD_NET_WIRE_ETH_H
#define ESSD_NET_WIRE_ETH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "lib/util.h"

enum { /* byte offsets */
       ETH_DST = 0,
       ETH_SRC = 6,
       ETH_TYPE = 12,
       ETH_LEN = 14,
       ETH_TAG_TCI = 14, /* PCP:3 DEI:1 VID:12, when ETH_TYPE is 0x8100 */
       ETH_TAGGED_TYPE = 16,
       ETH_TAGGED_LEN = 18,
};

enum {
    ETHERTYPE_IPV4 = 0x0800,
    ETHERTYPE_ARP = 0x0806,
    ETHERTYPE_VLAN = 0x8100,
    ETHERTYPE_IPV6 = 0x86dd,
    ETHERTYPE_SLOW = 0x8809,
    ETHERTYPE_AOE = 0x88a2,
    ETHERTYPE_LLDP = 0x88cc,
    ETHERTYPE_ROCE_V1 = 0x8915,
};

struct mac_addr {
    uint8_t bytes[6];
};

struct eth {
    struct mac_addr dst;
    struct mac_addr src;
    uint16_t type; /* EtherType; in a tagged frame the one after the tag */
    bool tagged;
    bool dei;
    uint8_t priority; /* 0..7; 0 when untagged */
    uint16_t vlan;    /* 0..4095; 0 for no VLAN (untagged or priority tag) */
};

static inline bool mac_addr_equal(const struct mac_addr *a,
                                  const struct mac_addr *b)
{
    return memcmp(a->bytes, b->bytes, sizeof(a->bytes)) == 0;
}

/** True for every group address, which includes broadcast. */
static inline bool mac_addr_is_multicast(const struct mac_addr *mac)
{
    return mac->bytes[0] & 1;
}

static inline bool mac_addr_is_zero(const struct mac_addr *mac)
{
    static const struct mac_addr zero;

    return mac_addr_equal(mac, &zero);
}

/** The length of this header: ETH_LEN or ETH_TAGGED_LEN. */
static inline size_t eth_header_len(const struct eth *eth)
{
    return eth->tagged ? ETH_TAGGED_LEN : ETH_LEN;
}

/** @return false when the frame is too short; the payload follows at
 *          eth_header_len(). */
MUST_USE bool eth_parse(struct eth *eth, const uint8_t *buf, size_t len);

/** Write eth_header_len() bytes. */
void eth_emit(const struct eth *eth, uint8_t *buf);

#endif
