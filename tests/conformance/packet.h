/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Packets for the conformance tests: built with any fault that a test wants,
 * parsed as far as possible, and described in words.
 */
#ifndef ESSD_CONFORM_PACKET_H
#define ESSD_CONFORM_PACKET_H

#include "hw-model/core/frame.h"
#include "net/wire/arp.h"
#include "net/wire/bth.h"
#include "net/wire/eth.h"
#include "net/wire/icmp.h"
#include "net/wire/ipv4.h"
#include "net/wire/ipv6.h"
#include "net/wire/mad.h"
#include "net/wire/roce_ext.h"
#include "net/wire/roce_opcode.h"
#include "net/wire/udp.h"

/* ---- Parsed packets. */

/* A has_... member tells whether the members below it are filled in; parsing
 * ends at the first damaged part, and `damage` gives the reason. */

struct packet {
    unsigned int port;
    uint64_t time_us; /* When it was read; it came after since_us. */
    uint64_t since_us;
    const uint8_t *frame;
    size_t len_bytes;
    const char *damage; /* NULL: no damage was found. */

    struct eth eth;
    bool has_arp;
    struct arp arp;

    bool has_ip;
    bool is_v6;
    struct ip_addr src, dst;
    uint8_t protocol; /* For IPv6, the last next header. */
    uint8_t ttl;      /* Or hop limit. */
    uint8_t tos;      /* Or traffic class. */
    uint16_t ip_id;
    bool dont_fragment;
    bool is_fragment;
    bool more_fragments;
    uint32_t fragment_offset_bytes;
    const uint8_t *ip_header;
    /* What follows the IP headers, without the frame's padding. */
    const uint8_t *l4;
    size_t l4_len;

    bool has_icmp; /* ICMP or ICMPv6; the checksum is correct. */
    struct icmp icmp;

    bool has_udp; /* The checksum is correct or absent. */
    struct udp udp;
    const uint8_t *udp_payload;
    size_t udp_payload_len;

    bool has_bth; /* The ICRC is correct. */
    struct bth bth;
    const uint8_t *ext; /* The extended headers, not parsed. */
    struct reth reth;   /* Each is filled in if the opcode has it, else zero. */
    struct aeth aeth;
    struct deth deth;
    uint32_t ieth_rkey;
    uint32_t immediate;
    const uint8_t *data; /* The message, without pad. */
    size_t data_len;

    bool has_mad; /* UD to or from QP 1; cm is the message in the MAD. */
    struct mad mad;
    const uint8_t *cm; /* MAD_DATA_LEN bytes. */
};

/** @return false when the frame is shorter than an Ethernet header */
bool packet_parse(struct packet *packet, const uint8_t *frame,
                  size_t len_bytes);

/** Describe the packet in one line of decoded fields. @return text */
const char *packet_text(const struct packet *packet, char *text, size_t room);

/* ---- Built packets. */

/* The sender and the receiver of a packet. */
struct packet_path {
    struct mac_addr src_mac, dst_mac;
    struct ip_addr src, dst; /* Both of the same family. */
    bool tagged;
    uint16_t vlan;
    uint8_t priority;
    uint8_t ttl; /* 0: 64, or 255 for ND. */
    uint8_t tos;
    bool may_fragment; /* For IPv4: DF is clear. */
    uint16_t ip_id;
};

/**
 * Build an Ethernet and an IP header around `payload`.
 *
 * @param frame  FRAME_LEN_MAX bytes
 * @return the length of the frame, which is not padded to 60
 */
size_t packet_ip(uint8_t *frame, const struct packet_path *path,
                 uint8_t protocol, const void *payload, size_t len_bytes);

size_t packet_udp(uint8_t *frame, const struct packet_path *path,
                  uint16_t src_port, uint16_t dst_port, const void *payload,
                  size_t len_bytes);

/**
 * Build ICMP or ICMPv6 by the path's family, with a correct checksum; `rest` is
 * the second word, and `data` follows it.
 */
size_t packet_icmp(uint8_t *frame, const struct packet_path *path, uint8_t type,
                   uint8_t code, uint32_t rest, const void *data,
                   size_t len_bytes);

/** Build ARP; `dst` is broadcast if it is zero. */
size_t packet_arp(uint8_t *frame, const struct mac_addr *dst,
                  const struct mac_addr *src, const struct arp *arp);

/* A RoCE packet. Correct values are derived; the other members make faults. */
struct packet_roce {
    struct bth bth; /* pad_bytes is derived; pkey 0 stands for ffff. */
    struct reth reth;
    struct aeth aeth;
    struct deth deth;
    uint32_t ieth_rkey;
    uint32_t immediate;
    const void *data; /* NULL: bytes of value `fill`. */
    size_t data_len;
    uint8_t fill;
    uint16_t udp_src_port; /* 0: c000. */

    /* Faults. */
    uint32_t icrc_xor;
    uint8_t pad_xor; /* Applied to PadCnt after it was derived. */
    uint8_t transport_version;
    bool is_pkey_zero;
    int udp_len_delta, ip_len_delta;
    uint16_t udp_checksum; /* For IPv4, used as it is; 0: none. */
    /* Removed from the frame's end; the length fields stay. */
    size_t cut_bytes;
    const uint8_t *ext; /* Used instead of the headers above. */
    size_t ext_len;     /* Length of ext. */
};

size_t packet_roce(uint8_t *frame, const struct packet_path *path,
                   const struct packet_roce *roce);

#endif
