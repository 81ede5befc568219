/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ARP for IPv4 over Ethernet.
 * Spec: RFC 826; RFC 5227 (probes and announcements).
 */
#ifndef ESSD_NET_WIRE_ARP_H
#define ESSD_NET_WIRE_ARP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/util.h"
#include "net/wire/eth.h"
#include "net/wire/ip_addr.h"

enum { /* byte offsets; fields of more than one byte big-endian */
       ARP_HARDWARE = 0, /* 1: Ethernet */
       ARP_PROTOCOL = 2, /* 0800h: IPv4 */
       ARP_HARDWARE_LEN = 4,
       ARP_PROTOCOL_LEN = 5,
       ARP_OPERATION = 6,
       ARP_SENDER_MAC = 8,
       ARP_SENDER_IP = 14,
       ARP_TARGET_MAC = 18,
       ARP_TARGET_IP = 24,
       ARP_LEN = 28,
};

enum { ARP_REQUEST = 1, ARP_REPLY = 2 };

struct arp {
    uint16_t operation;
    struct mac_addr sender_mac;
    struct mac_addr target_mac;
    struct ip_addr sender_ip; /* 0.0.0.0 in a probe */
    struct ip_addr target_ip;
};

/** @return false when cut short, or when not for Ethernet and IPv4 */
MUST_USE bool arp_parse(struct arp *arp, const uint8_t *buf, size_t len);

/** Write ARP_LEN bytes. */
void arp_emit(const struct arp *arp, uint8_t *buf);

#endif
