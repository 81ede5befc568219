/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A TCP peer of the chapter `tcp`: segments are made from the fields that a
 * test writes down, byte by byte, and the drive's are taken apart again.
 * Nothing here uses net/tcp or net/wire/tcp.h, so that a field that these read
 * wrongly in both directions is noticed.
 * Spec: RFC 9293 section 3.1; RFC 7323 sections 2.2 and 3.2; RFC 2018 sections
 * 2 and 3.
 */
#ifndef ESSD_CONFORM_TCP_PEER_H
#define ESSD_CONFORM_TCP_PEER_H

#include "conform.h"

enum {
    TCP_PEER_ECHO = 7,    /* RFC 862 */
    TCP_PEER_DISCARD = 9, /* RFC 863 */
    TCP_PEER_OPTIONS = 40,
    TCP_PEER_BLOCKS = 4,
};

enum { /* The bits of the flags' byte. */
       SEG_FIN = 0x01,
       SEG_SYN = 0x02,
       SEG_RST = 0x04,
       SEG_PSH = 0x08,
       SEG_ACK = 0x10,
       SEG_URG = 0x20,
       SEG_ECE = 0x40,
       SEG_CWR = 0x80,
};

/* One end of a connection with the drive. */
struct tcp_peer {
    struct conf *conf;
    unsigned int port;
    struct packet_path path;
    uint16_t own_port, drive_port;
    uint32_t isn; /* Sequence number of this end's SYN. */
    uint32_t iss; /* That of the drive's; any number until it has come. */
};

/* A segment of the peer, as it is to be on the wire. */
struct tcp_peer_out {
    uint32_t seq, ack;
    uint8_t flags;
    uint16_t window, urgent;
    uint8_t options[TCP_PEER_OPTIONS];
    size_t options_len; /* Filled up with zeroes to whole words. */
    const uint8_t *data;
    size_t len;

    /* Faults. */
    uint8_t data_offset;   /* In words; 0: as it has to be. */
    uint16_t checksum_xor; /* Applied to the correct one. */
    bool has_zero_sum;     /* The correct checksum is 0. */
    size_t cut_bytes;      /* Missing at the end; the checksum is correct. */
    uint8_t tos;
    uint16_t fragment_at; /* Sent in two fragments, the first this long. */
    bool has_ip_options;  /* Four bytes of IPv4 options. */
};

/* A segment of the drive. */
struct tcp_peer_in {
    const struct packet *packet;
    uint32_t seq, ack;
    uint8_t flags;
    uint16_t window;
    const uint8_t *data;
    uint32_t len;
    bool has_mss, has_shift, has_times, has_sack_permitted;
    uint16_t mss;
    uint8_t shift;
    uint32_t tsval, tsecr;
    uint8_t num_blocks;
    struct {
        uint32_t left, right;
    } blocks[TCP_PEER_BLOCKS];
};

/**
 * A peer with addresses of conf_peer(conf, index, port), in the drive's subnet,
 * that has sent nothing yet.  It waits for nothing but `own_port`.
 */
struct tcp_peer tcp_peer_new(struct conf *conf, unsigned int index,
                             unsigned int port, bool is_v6, uint16_t own_port,
                             uint16_t drive_port);

/** The same with addresses of a stranger, of which there are many. */
struct tcp_peer tcp_peer_stranger(struct conf *conf, unsigned int number,
                                  uint16_t drive_port);

void tcp_peer_send(const struct tcp_peer *peer, const struct tcp_peer_out *out);

/**
 * Take the next segment of the drive for this peer.  The test fails if its
 * checksum is wrong or its options cannot be read.
 *
 * @param timeout_us  0: conf_answer_us(), and the test fails if none comes
 * @return false when there was none
 */
bool tcp_peer_take(const struct tcp_peer *peer, struct tcp_peer_in *in,
                   uint64_t timeout_us);

/** How many segments have come for this peer in this test, with these flags. */
unsigned int tcp_peer_count(const struct tcp_peer *peer, uint8_t flags);

/** Byte `at` of the stream of bytes that every peer sends. */
uint8_t tcp_peer_byte(uint32_t at);

/** An option as bytes: @return their number */
size_t tcp_peer_mss(uint8_t *to, uint16_t mss);
size_t tcp_peer_times(uint8_t *to, uint32_t tsval, uint32_t tsecr);

/** Switch echo and discard; switching them off ends all connections. */
void tcp_peer_services(struct conf *conf, bool are_on);

/** A test begins and ends: the services are on meanwhile. */
void tcp_peer_begin(struct conf *conf);
void tcp_peer_end(struct conf *conf);

/* ---- Handshakes by hand, for tests of many connections. */

/** Send a SYN with an MSS of 1000. */
void tcp_peer_syn(struct tcp_peer *peer);

/** Send the ACK that ends the handshake. */
void tcp_peer_ack(const struct tcp_peer *peer);

/** Connect; the test fails unless the drive does its part. */
void tcp_peer_open(struct tcp_peer *peer);

/** Send `len` bytes and take them back; the connection has echoed none yet. */
void tcp_peer_echo(struct tcp_peer *peer, uint32_t len);

#endif
