/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Frames that the drive's emitters had no part in: literal_frames.h, made by
 * scapy.  A test copies one, writes the addresses of the drive under test over
 * those of the native drive, and seals it: checksums and the ICRC are computed
 * here, by code that shares nothing with net/wire.
 */
#ifndef ESSD_CONFORM_LITERAL_H
#define ESSD_CONFORM_LITERAL_H

#include "conform.h"

enum { /* Byte offsets in an untagged frame. */
       LITERAL_ETH_TYPE = 12,
       LITERAL_IP = 14,
       LITERAL_ARP_SENDER = 22, /* MAC, then IPv4 */
       LITERAL_ARP_TARGET = 32,
       LITERAL_IPV4_SRC = 26,
       LITERAL_IPV4_DST = 30,
       LITERAL_IPV6_SRC = 22,
       LITERAL_IPV6_DST = 38,
       LITERAL_L4 = 34,    /* IPv4: ICMP, UDP */
       LITERAL_L4_V6 = 54, /* IPv6 */
       LITERAL_UDP_PAYLOAD = 42,
       LITERAL_OPCODE = 42, /* BTH */
       LITERAL_DEST_QP = 47,
       LITERAL_PSN = 51,
       LITERAL_EXT = 54, /* what follows the BTH: RETH, AETH, or the capsule */
       LITERAL_MSN = 55, /* in an AETH */
       LITERAL_MAD = 62, /* UD: DETH is before it */
       LITERAL_MAD_TID = 70,
       LITERAL_MAD_ATTRIBUTE = 78,
       LITERAL_CM = 86, /* the message in the MAD */
};

struct literal {
    uint8_t bytes[1514];
    size_t len_bytes;
};

/**
 * A copy until the test's end; fails unless literal_seal() leaves it as scapy
 * made it, which shows that scapy and this file agree on every checksum.
 */
struct literal *literal_new(struct conf *conf, const uint8_t *bytes,
                            size_t len_bytes);
#define LITERAL(conf, name) literal_new(conf, name, sizeof(name))

/** Write MAC and IP addresses of both ends: from peer 0 to the drive's port 0,
 *  or back.  Not for ARP and LLDP. */
void literal_to_drive(struct conf *conf, struct literal *literal);
void literal_to_peer(struct conf *conf, struct literal *literal);

/** Compute the IPv4, ICMP, ICMPv6 and UDP checksums and the ICRC anew, where
 *  the frame has them. */
void literal_seal(struct literal *literal);

/** Seal and send on port 0. */
void literal_send(struct conf *conf, struct literal *literal);

/** The next frame that has these bytes at that offset; fails with `what` when
 *  none comes, or when one of its checksums or its ICRC is wrong. */
const uint8_t *literal_take(struct conf *conf, const char *what, size_t at,
                            const void *bytes, size_t len_bytes);

#endif
