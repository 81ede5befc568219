/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the files of chapters `net` and `eth` share: echo requests, packets that
 * are mended after they were changed, and silence that is known to be one.
 */
#ifndef ESSD_CONFORM_NET_LIB_H
#define ESSD_CONFORM_NET_LIB_H

#include "conform.h"
#include "net/wire/ipv6_ext.h"

enum {
    NET_CLOSED_PORT = 47912, /* nobody listens there */
    /* Hosts send few ICMP errors: a tenth of a second each, as RFC 4443
     * section 2.4 (f) has it in its example. */
    NET_ERROR_REST_US = 200000,
};

/**
 * From a peer to the target's address on the peer's port.  Not applicable when
 * the target has none of that family.
 */
struct packet_path net_path(struct conf *conf, const struct conf_peer *peer,
                            bool is_v6);

/** Shorthand: from peer 0 on port 0. */
struct packet_path net_path0(struct conf *conf, bool is_v6);

/** An identifier and sequence number that no other echo of the test has. */
uint32_t net_rest(struct conf *conf);

void net_pattern(uint8_t *data, size_t len_bytes);

/** An echo request. @return its length */
size_t net_echo(uint8_t *frame, const struct packet_path *path, uint32_t rest,
                const void *data, size_t len_bytes);

/** Where the IP header of a frame of ours begins. */
uint8_t *net_ip(uint8_t *frame);

/** Write the IPv4 header's checksum anew. */
void net_mend_ipv4(uint8_t *frame);

/* Send on port 0. */
void net_send(struct conf *conf, const uint8_t *frame, size_t len_bytes);

/* ---- What comes. */

/* A whole echo reply with that rest, ctx: uint32_t *. */
bool net_is_reply(const struct packet *packet, const void *ctx);

/* An ICMP or ICMPv6 error, ctx: NULL, or the address it must be sent to. */
bool net_is_error(const struct packet *packet, const void *ctx);

/* Any frame to the MAC address ctx. */
bool net_is_to(const struct packet *packet, const void *ctx);

/** The reply to it, with everything in it checked. */
const struct packet *net_take_reply(struct conf *conf,
                                    const struct packet_path *path,
                                    uint32_t rest, const void *data,
                                    size_t len_bytes);

/** Send an echo request and check the reply. */
const struct packet *net_ping(struct conf *conf, const struct packet_path *path,
                              const void *data, size_t len_bytes);

/**
 * The target has dealt with all that was sent on that port: a ping from peer 7
 * was answered behind it.
 */
void net_settle(struct conf *conf, unsigned int port);

/** Settle; nothing of what was sent before was answered so. */
void net_expect_none(struct conf *conf, unsigned int port, const char *what,
                     conf_match *match, const void *ctx);

/**
 * An error about what was sent: its addresses, and that it quotes the packet.
 *
 * @param sent  the frame
 */
const struct packet *net_take_error(struct conf *conf,
                                    const struct packet_path *path,
                                    uint8_t type, uint8_t code,
                                    const uint8_t *sent, size_t sent_len);

/* ---- IPv6 extension headers. */

struct net_chain {
    uint8_t first; /* next header value of what comes first in bytes */
    uint8_t bytes[512];
    size_t len_bytes;
    size_t last; /* where the last header begins */
};

/** One more header: `value` is what it is, `rest` what follows its first two
 *  bytes; rounded up to 8 bytes with PadN. */
void net_chain_add(struct net_chain *chain, uint8_t value, const void *rest,
                   size_t rest_len);

/** The chain before an echo request. @return the frame's length */
size_t net_chain_echo(uint8_t *frame, const struct packet_path *path,
                      struct net_chain *chain, uint32_t rest);

/* ---- Fragments of an ICMP message. */

struct net_whole { /* an echo request in one piece */
    struct packet_path path;
    uint32_t rest, id;
    size_t len_bytes; /* of the ICMP message */
    uint8_t *message;
};

struct net_whole *net_whole_echo(struct conf *conf, bool is_v6,
                                 size_t data_len);

/** `len` bytes from `at` on, in a fragment. */
void net_send_piece(struct conf *conf, const struct net_whole *whole, size_t at,
                    size_t len, bool more);

/** The reply, in one piece or several. */
void net_take_whole(struct conf *conf, const struct net_whole *whole);

/** There is no reply, in one piece or several. */
void net_expect_no_whole(struct conf *conf, const struct net_whole *whole);

#endif
