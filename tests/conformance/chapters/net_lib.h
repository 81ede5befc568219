/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the files of the chapters `net` and `eth` share: echo requests,
 * checksums computed again after a change, and a way to know that no answer
 * will come.
 */
#ifndef ESSD_CONFORM_NET_LIB_H
#define ESSD_CONFORM_NET_LIB_H

#include "conform.h"
#include "net/wire/ipv6_ext.h"

enum {
    NET_CLOSED_PORT = 47912, /* A UDP port on which nobody listens. */
    /* Hosts limit the rate of their ICMP errors: one in a tenth of a second in
     * the example of RFC 4443 section 2.4 (f). */
    NET_ERROR_REST_US = 200000,
};

/**
 * The path from a peer to the target's address on the peer's port. The test is
 * not applicable when the target has no address of that family.
 */
struct packet_path net_path(struct conf *conf, const struct conf_peer *peer,
                            bool is_v6);

/** The path from peer 0 on port 0. */
struct packet_path net_path0(struct conf *conf, bool is_v6);

/**
 * An identifier and sequence number that no other echo request of the test has.
 */
uint32_t net_rest(struct conf *conf);

void net_pattern(uint8_t *data, size_t len_bytes);

/** Make an echo request. @return the length of the frame */
size_t net_echo(uint8_t *frame, const struct packet_path *path, uint32_t rest,
                const void *data, size_t len_bytes);

/** Where the IP header begins in a frame that a test has made. */
uint8_t *net_ip(uint8_t *frame);

/** Compute the IPv4 header's checksum again. */
void net_mend_ipv4(uint8_t *frame);

/* Send a frame on port 0. */
void net_send(struct conf *conf, const uint8_t *frame, size_t len_bytes);

/* ---- Received packets. */

/*
 * A whole echo reply with the identifier and sequence number *ctx (uint32_t).
 */
bool net_is_reply(const struct packet *packet, const void *ctx);

/* An ICMP or ICMPv6 error; ctx is NULL, or the address it must be sent to. */
bool net_is_error(const struct packet *packet, const void *ctx);

/* A frame to the MAC address *ctx. */
bool net_is_to(const struct packet *packet, const void *ctx);

/** Take the echo reply, and check every field. */
const struct packet *net_take_reply(struct conf *conf,
                                    const struct packet_path *path,
                                    uint32_t rest, const void *data,
                                    size_t len_bytes);

/** Send an echo request and check the reply. */
const struct packet *net_ping(struct conf *conf, const struct packet_path *path,
                              const void *data, size_t len_bytes);

/**
 * Wait until the target has processed everything that was sent on that port: a
 * ping from peer 7, sent last, is answered.
 */
void net_settle(struct conf *conf, unsigned int port);

/** Settle, then fail if any packet that fits was received. */
void net_expect_none(struct conf *conf, unsigned int port, const char *what,
                     conf_match *match, const void *ctx);

/**
 * Take the error about a frame that was sent; check its addresses and that it
 * quotes the packet.
 *
 * @param sent  the frame
 */
const struct packet *net_take_error(struct conf *conf,
                                    const struct packet_path *path,
                                    uint8_t type, uint8_t code,
                                    const uint8_t *sent, size_t sent_len);

/* ---- IPv6 extension headers. */

struct net_chain {
    uint8_t first; /* The next header value of the first header in `bytes`. */
    uint8_t bytes[512];
    size_t len_bytes;
    size_t last; /* Where the last header begins. */
};

/**
 * Add a header: `value` is its type; `rest` is what follows its first two
 * bytes, padded to 8 bytes with PadN.
 */
void net_chain_add(struct net_chain *chain, uint8_t value, const void *rest,
                   size_t rest_len);

/** Make an echo request with these headers. @return the frame's length */
size_t net_chain_echo(uint8_t *frame, const struct packet_path *path,
                      struct net_chain *chain, uint32_t rest);

/* ---- Fragments of an ICMP message. */

struct net_whole { /* An echo request that is sent in fragments. */
    struct packet_path path;
    uint32_t rest, id;
    size_t len_bytes; /* Length of the ICMP message. */
    uint8_t *message;
};

struct net_whole *net_whole_echo(struct conf *conf, bool is_v6,
                                 size_t data_len);

/** Send `len` bytes of the message, from `at` on, as a fragment. */
void net_send_piece(struct conf *conf, const struct net_whole *whole, size_t at,
                    size_t len, bool more);

/** Take the reply, whole or in fragments, and check it. */
void net_take_whole(struct conf *conf, const struct net_whole *whole);

/** Check that no reply comes, whole or in fragments. */
void net_expect_no_whole(struct conf *conf, const struct net_whole *whole);

#endif
