/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Packets for the conformance tests: built with any fault that a test wants,
 * taken apart as far as they can be, and told in words.
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

/* ---- Taken apart.  A has_... says which of the parts below are filled in;
 *      what is damaged ends the list, and `damage` says why. */

struct packet {
    unsigned int port;
    uint64_t time_us; /* when it was read; it came after since_us */
    uint64_t since_us;
    const uint8_t *frame;
    size_t len_bytes;
    const char *damage; /* NULL: none was found */

    struct eth eth;
    bool has_arp;
    struct arp arp;

    bool has_ip;
    bool is_v6;
    struct ip_addr src, dst;
    uint8_t protocol; /* the last next header of IPv6 */
    uint8_t ttl;      /* or hop limit */
    uint8_t tos;      /* or traffic class */
    uint16_t ip_id;
    bool dont_fragment;
    bool is_fragment;
    bool more_fragments;
    uint32_t fragment_offset_bytes;
    const uint8_t *ip_header;
    const uint8_t *l4; /* behind the IP headers, padding of the frame cut */
    size_t l4_len;

    bool has_icmp; /* or ICMPv6; the checksum was right */
    struct icmp icmp;

    bool has_udp; /* the checksum was right or absent */
    struct udp udp;
    const uint8_t *udp_payload;
    size_t udp_payload_len;

    bool has_bth; /* the ICRC was right */
    struct bth bth;
    const uint8_t *ext; /* extended headers, raw */
    struct reth reth;   /* each with its opcode flag, else zero */
    struct aeth aeth;
    struct deth deth;
    uint32_t ieth_rkey;
    uint32_t immediate;
    const uint8_t *data; /* of the message, without pad */
    size_t data_len;

    bool has_mad; /* UD to or from QP 1; cm is the message behind it */
    struct mad mad;
    const uint8_t *cm; /* MAD_DATA_LEN bytes */
};

/** @return false when not even Ethernet's header is there */
bool packet_parse(struct packet *packet, const uint8_t *frame,
                  size_t len_bytes);

/** The packet in one line of decoded fields. @return text */
const char *packet_text(const struct packet *packet, char *text, size_t room);

/* ---- Built. */

/* Where a packet comes from and goes to. */
struct packet_path {
    struct mac_addr src_mac, dst_mac;
    struct ip_addr src, dst; /* of one family */
    bool tagged;
    uint16_t vlan;
    uint8_t priority;
    uint8_t ttl; /* 0: 64, or 255 for ND */
    uint8_t tos;
    bool may_fragment; /* IPv4: DF is set otherwise */
    uint16_t ip_id;
};

/**
 * Ethernet and IP header around `payload`.
 *
 * @param frame  FRAME_LEN_MAX bytes
 * @return its length, not padded to 60
 */
size_t packet_ip(uint8_t *frame, const struct packet_path *path,
                 uint8_t protocol, const void *payload, size_t len_bytes);

size_t packet_udp(uint8_t *frame, const struct packet_path *path,
                  uint16_t src_port, uint16_t dst_port, const void *payload,
                  size_t len_bytes);

/** ICMP or ICMPv6 by the path's family, checksum right; rest is the second
 *  word, data what follows it. */
size_t packet_icmp(uint8_t *frame, const struct packet_path *path, uint8_t type,
                   uint8_t code, uint32_t rest, const void *data,
                   size_t len_bytes);

/** `eth.type` is ARP, `dst` all ones where zero. */
size_t packet_arp(uint8_t *frame, const struct mac_addr *dst,
                  const struct mac_addr *src, const struct arp *arp);

/* A RoCE packet.  Everything that is right is derived; the rest is faults. */
struct packet_roce {
    struct bth bth; /* pad_bytes: derived, pkey 0: ffff */
    struct reth reth;
    struct aeth aeth;
    struct deth deth;
    uint32_t ieth_rkey;
    uint32_t immediate;
    const void *data; /* NULL: `fill` */
    size_t data_len;
    uint8_t fill;
    uint16_t udp_src_port; /* 0: c000 */

    /* Faults. */
    uint32_t icrc_xor;
    uint8_t pad_xor; /* into PadCnt, behind its derivation */
    uint8_t transport_version;
    bool is_pkey_zero;
    int udp_len_delta, ip_len_delta;
    uint16_t udp_checksum; /* IPv4: as is; 0: none */
    size_t cut_bytes;      /* taken from the frame's end, lengths kept */
    const uint8_t *ext;    /* instead of the headers above */
    size_t ext_len;        /* with ext */
};

size_t packet_roce(uint8_t *frame, const struct packet_path *path,
                   const struct packet_roce *roce);

#endif
