/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * TCP header with its options.
 * Spec: RFC 9293 sections 3.1 and 3.2; RFC 7323 sections 2.2 and 3.2 (window
 * scale, timestamps); RFC 2018 sections 2 and 3 (SACK); RFC 3168 section 6.1
 * (ECE, CWR).
 *
 * Left out: every option that is not listed in struct tcp_options.  parse skips
 * it by its length, emit writes none.
 */
#ifndef ESSD_NET_WIRE_TCP_H
#define ESSD_NET_WIRE_TCP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/util.h"
#include "net/wire/ip_addr.h"

enum { /* byte offsets; fields of more than one byte big-endian */
       TCP_SRC_PORT = 0,
       TCP_DST_PORT = 2,
       TCP_SEQ = 4,
       TCP_ACK_NUMBER = 8,
       TCP_DATA_OFFSET = 12, /* header length in 4 bytes:4 reserved:4 */
       TCP_FLAGS = 13,
       TCP_WINDOW = 14,
       TCP_CHECKSUM = 16,
       TCP_URGENT = 18,
       TCP_LEN = 20,
       TCP_LEN_MAX = 60, /* with options */
};

enum tcp_flag {
    TCP_FIN = 0x01,
    TCP_SYN = 0x02,
    TCP_RST = 0x04,
    TCP_PSH = 0x08,
    TCP_ACK = 0x10,
    TCP_URG = 0x20,
    TCP_ECE = 0x40,
    TCP_CWR = 0x80,
};

enum {
    TCP_SACKS_MAX = 4,
    TCP_SHIFT_MAX = 14, /* RFC 7323 section 2.3: larger ones count as 14 */
    TCP_TIMES_LEN = 12, /* the timestamps option with its two NOPs */
};

/* Bytes from `left` up to, but without, `right`. */
struct tcp_block {
    uint32_t left;
    uint32_t right;
};

struct tcp_options {
    uint16_t mss;  /* valid if has_mss */
    uint8_t shift; /* window scale, 0..TCP_SHIFT_MAX; valid if has_shift */
    uint8_t sack_count;
    bool has_mss;
    bool has_shift;
    bool has_times;
    bool sack_permitted;
    uint32_t tsval; /* both valid if has_times */
    uint32_t tsecr;
    struct tcp_block sacks[TCP_SACKS_MAX];
};

struct tcp_header {
    uint16_t src_port;
    uint16_t dst_port;
    uint32_t seq;
    uint32_t ack;
    uint16_t window; /* as on the wire: not scaled */
    uint16_t checksum;
    uint16_t urgent;
    uint8_t flags;      /* enum tcp_flag */
    uint8_t header_len; /* TCP_LEN..TCP_LEN_MAX; set by parse */
    struct tcp_options options;
};

/**
 * @param len  of the whole segment
 * @return false when the header is cut, its length is below 20 or above `len`,
 *         or an option's length is 0, 1, wrong for its kind, or reaches beyond
 *         the header (RFC 9293 section 3.1, MUST-7)
 */
MUST_USE bool tcp_header_parse(struct tcp_header *tcp, const uint8_t *buf,
                               size_t len);

/** The length that tcp_header_emit() will write: a multiple of 4. */
size_t tcp_header_bytes(const struct tcp_header *tcp);

/**
 * Write a header with its options in the order that Linux uses, padded with
 * NOPs to a multiple of 4, and with the checksum that `tcp` holds.
 *
 * @param buf  TCP_LEN_MAX bytes; the options fit: with timestamps there are at
 *             most 3 SACK blocks, and no other option of a SYN beside blocks
 * @return tcp_header_bytes()
 */
size_t tcp_header_emit(const struct tcp_header *tcp, uint8_t *buf);

/**
 * Compute the checksum of a segment whose header and payload are in place.
 *
 * @return when the checksum field in `buf` is zero: the value to send.  When
 *         the field is as received: 0 if it is correct.  (Zero is a valid value
 *         to send, unlike UDP's.)
 */
uint16_t tcp_checksum(const struct ip_addr *src, const struct ip_addr *dst,
                      const uint8_t *buf, size_t len);

#endif
