/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Frames that the code under test did not make: scapy made those of
 * literal_frames.h. A test copies one, replaces the native drive's addresses by
 * those of the drive under test, and seals it: checksums and the ICRC are
 * computed here, by code that shares nothing with net/wire.
 */
#ifndef ESSD_CONFORM_LITERAL_H
#define ESSD_CONFORM_LITERAL_H

#include "conform.h"

enum { /* Byte offsets in an untagged frame. */
       LITERAL_ETH_TYPE = 12,
       LITERAL_IP = 14,
       LITERAL_ARP_SENDER = 22, /* MAC address, then IPv4 address. */
       LITERAL_ARP_TARGET = 32,
       LITERAL_IPV4_SRC = 26,
       LITERAL_IPV4_DST = 30,
       LITERAL_IPV6_SRC = 22,
       LITERAL_IPV6_DST = 38,
       LITERAL_L4 = 34,    /* ICMP or UDP, over IPv4. */
       LITERAL_L4_V6 = 54, /* ICMPv6 or UDP, over IPv6. */
       LITERAL_UDP_PAYLOAD = 42,

       /* RoCE over IPv4.  Over IPv6, all of it is this much farther. */
       LITERAL_V6_SHIFT = 20,
       LITERAL_OPCODE = 42, /* The first byte of the BTH. */
       LITERAL_DEST_QP = 47,
       LITERAL_PSN = 51,
       LITERAL_EXT = 54, /* What follows the BTH: RETH, AETH, or the capsule. */
       LITERAL_MSN = 55, /* The MSN in the AETH. */
       LITERAL_MAD = 62, /* A MAD follows the DETH of an unreliable datagram. */
       LITERAL_MAD_TID = 70,
       LITERAL_MAD_ATTRIBUTE = 78,
       LITERAL_CM = 86, /* The CM message in the MAD. */
};

struct literal {
    uint8_t bytes[1514];
    size_t len_bytes;
};

/**
 * Copy a literal frame; the copy lives until the test ends. Fails unless
 * literal_seal() leaves the frame as scapy made it, which shows that scapy and
 * this file agree on every checksum.
 */
struct literal *literal_new(struct conf *conf, const uint8_t *bytes,
                            size_t len_bytes);
#define LITERAL(conf, name) literal_new(conf, name, sizeof(name))

/**
 * Write the MAC and IP addresses of both ends: from peer 0 to the drive's port
 * 0, or back. Not for ARP and LLDP.
 */
void literal_to_drive(struct conf *conf, struct literal *literal);
void literal_to_peer(struct conf *conf, struct literal *literal);

/**
 * Compute the IPv4, ICMP, ICMPv6 and UDP checksums and the ICRC again, where
 * the frame has them.
 */
void literal_seal(struct literal *literal);

/** Seal the frame and send it on port 0. */
void literal_send(struct conf *conf, struct literal *literal);

/**
 * Take the next frame that has these bytes at that offset. Fails, naming
 * `what`, when none comes, or when one of its checksums or its ICRC is wrong.
 */
const uint8_t *literal_take(struct conf *conf, const char *what, size_t at,
                            const void *bytes, size_t len_bytes);

#endif
