/* SPDX-License-Identifier: BSD-2-Clause */
#include "net_lib.h"

#include <string.h>

#include "lib/bytes.h"
#include "net/wire/checksum.h"

enum {
    SETTLE_PEER = CONF_PEERS - 1,
    GRACE_US = 5000, /* Some answers, such as fragments, come a little later. */
    ECHO_DATA = 8,
};

struct packet_path net_path(struct conf *conf, const struct conf_peer *peer,
                            bool is_v6)
{
    const struct conf_port *to = &conf_target(conf)->ports[peer->port];
    struct packet_path path = {
        .src_mac = peer->mac,
        .dst_mac = to->mac,
        .src = is_v6 ? peer->ip6 : peer->ip4,
        .dst = is_v6 ? to->ip6 : to->ip4,
        .vlan = peer->vlan,
        .priority = peer->priority,
    };

    conf_needs_ip(conf, peer->port, is_v6);
    return path;
}

struct packet_path net_path0(struct conf *conf, bool is_v6)
{
    return net_path(conf, conf_peer(conf, 0, 0), is_v6);
}

uint32_t net_rest(struct conf *conf)
{
    return (uint32_t)conf_random(conf);
}

void net_pattern(uint8_t *data, size_t len_bytes)
{
    for (size_t i = 0; i < len_bytes; i++) {
        data[i] = (uint8_t)(i * 7 + (i >> 8) + 1);
    }
}

size_t net_echo(uint8_t *frame, const struct packet_path *path, uint32_t rest,
                const void *data, size_t len_bytes)
{
    return packet_icmp(frame, path,
                       ip_addr_is_v4(&path->dst) ? ICMP_ECHO_REQUEST
                                                 : ICMPV6_ECHO_REQUEST,
                       0, rest, data, len_bytes);
}

uint8_t *net_ip(uint8_t *frame)
{
    return frame + (get_be16(frame + ETH_TYPE) == ETHERTYPE_VLAN
                        ? ETH_TAGGED_LEN
                        : ETH_LEN);
}

void net_mend_ipv4(uint8_t *frame)
{
    uint8_t *ip = net_ip(frame);
    size_t len = (size_t)(ip[IPV4_VERSION_IHL] & 0xf) * 4;

    put_be16(ip + IPV4_CHECKSUM, 0);
    put_be16(ip + IPV4_CHECKSUM, checksum_finish(checksum_add(0, ip, len)));
}

void net_send(struct conf *conf, const uint8_t *frame, size_t len_bytes)
{
    conf_send_frame(conf, 0, frame, len_bytes, 0);
}

/* ---- What comes. */

bool net_is_reply(const struct packet *packet, const void *ctx)
{
    return packet->has_icmp &&
           packet->icmp.type ==
               (packet->is_v6 ? ICMPV6_ECHO_REPLY : ICMP_ECHO_REPLY) &&
           packet->icmp.rest == *(const uint32_t *)ctx;
}

bool net_is_error(const struct packet *packet, const void *ctx)
{
    uint8_t type = packet->icmp.type;

    if (!packet->has_icmp ||
        (ctx != NULL && !ip_addr_equal(&packet->dst, ctx))) {
        return false;
    }
    return packet->is_v6
               ? type < ICMPV6_ECHO_REQUEST
               : type == ICMP_UNREACHABLE || type == ICMP_SOURCE_QUENCH ||
                     type == ICMP_REDIRECT || type == ICMP_TIME_EXCEEDED ||
                     type == ICMP_PARAMETER_PROBLEM;
}

bool net_is_to(const struct packet *packet, const void *ctx)
{
    return mac_addr_equal(&packet->eth.dst, ctx);
}

static void check_way_back(struct conf *conf, const struct packet_path *path,
                           const struct packet *packet)
{
    conf_same(conf, "destination MAC address", packet->eth.dst.bytes,
              path->src_mac.bytes, 6);
    conf_same(conf, "destination IP address", packet->dst.bytes,
              path->src.bytes, 16);
    conf_check(conf, packet->ttl != 0, "the TTL or hop limit is 0");
}

const struct packet *net_take_reply(struct conf *conf,
                                    const struct packet_path *path,
                                    uint32_t rest, const void *data,
                                    size_t len_bytes)
{
    const struct packet *reply =
        conf_take(conf, "an echo reply", net_is_reply, &rest);

    check_way_back(conf, path, reply);
    conf_same(conf, "source MAC address", reply->eth.src.bytes,
              path->dst_mac.bytes, 6);
    conf_same(conf, "source IP address", reply->src.bytes, path->dst.bytes, 16);
    conf_equal(conf, "code", reply->icmp.code, 0);
    conf_equal(conf, "length of the echo data", reply->l4_len - ICMP_LEN,
               len_bytes);
    if (len_bytes != 0) {
        conf_same(conf, "echo data", reply->l4 + ICMP_LEN, data, len_bytes);
    }
    return reply;
}

const struct packet *net_ping(struct conf *conf, const struct packet_path *path,
                              const void *data, size_t len_bytes)
{
    uint8_t *frame = conf_alloc(conf, FRAME_LEN_MAX);
    uint32_t rest = net_rest(conf);

    net_send(conf, frame, net_echo(frame, path, rest, data, len_bytes));
    return net_take_reply(conf, path, rest, data, len_bytes);
}

void net_settle(struct conf *conf, unsigned int port)
{
    struct packet_path path =
        net_path(conf, conf_peer(conf, SETTLE_PEER, port), false);
    uint8_t frame[128];
    uint32_t rest = net_rest(conf);
    const struct packet *reply;

    conf_send_frame(conf, port, frame,
                    net_echo(frame, &path, rest, "settled?", ECHO_DATA), 0);
    reply = conf_take(conf, "the answer to a later ping", net_is_reply, &rest);
    conf_equal(conf, "port of the answer", reply->port, port);
}

void net_expect_none(struct conf *conf, unsigned int port, const char *what,
                     conf_match *match, const void *ctx)
{
    net_settle(conf, port);
    conf_expect_none(conf, what, match, ctx, GRACE_US);
}

const struct packet *net_take_error(struct conf *conf,
                                    const struct packet_path *path,
                                    uint8_t type, uint8_t code,
                                    const uint8_t *sent, size_t sent_len)
{
    bool is_v6 = !ip_addr_is_v4(&path->dst);
    const uint8_t *ip =
        sent + (get_be16(sent + ETH_TYPE) == ETHERTYPE_VLAN ? ETH_TAGGED_LEN
                                                            : ETH_LEN);
    size_t ip_len = sent_len - (size_t)(ip - sent);
    /* An error quotes the header and 8 bytes (RFC 1122 3.2.2), or as much as
     * fits (RFC 4443 2.4 (c)). */
    size_t least =
        is_v6 ? MIN(ip_len, 1280u - IPV6_LEN - ICMP_LEN)
              : MIN(ip_len, (size_t)(ip[IPV4_VERSION_IHL] & 0xf) * 4 + 8);
    const struct packet *error =
        conf_take(conf, "an ICMP error", net_is_error, &path->src);

    check_way_back(conf, path, error);
    conf_equal(conf, "type of the error", error->icmp.type, type);
    conf_equal(conf, "code of the error", error->icmp.code, code);
    conf_check(conf, error->l4_len - ICMP_LEN >= least,
               "the error quotes only %zu bytes of at least %zu",
               error->l4_len - ICMP_LEN, least);
    conf_same(conf, "what the error quotes", error->l4 + ICMP_LEN, ip, least);
    if (is_v6) {
        conf_check(conf, error->len_bytes <= ETH_TAGGED_LEN + 1280,
                   "the error is longer than 1280 bytes");
    }
    return error;
}

/* ---- IPv6 extension headers. */

void net_chain_add(struct net_chain *chain, uint8_t value, const void *rest,
                   size_t rest_len)
{
    uint8_t *at = chain->bytes + chain->len_bytes;
    size_t len = (2 + rest_len + 7) / 8 * 8, pad = len - 2 - rest_len;

    ASSERT(chain->len_bytes + len <= sizeof(chain->bytes));
    if (chain->len_bytes == 0) {
        chain->first = value;
    } else {
        chain->bytes[chain->last] = value;
    }
    chain->last = chain->len_bytes;
    at[0] = IP_PROTOCOL_ICMPV6;
    at[1] = (uint8_t)(len / 8 - 1);
    memcpy(at + 2, rest, rest_len);
    memset(at + 2 + rest_len, 0, pad);
    if (pad >= 2) {
        at[2 + rest_len] = IPV6_OPTION_PADN;
        at[3 + rest_len] = (uint8_t)(pad - 2);
    }
    chain->len_bytes += len;
}

size_t net_chain_echo(uint8_t *frame, const struct packet_path *path,
                      struct net_chain *chain, uint32_t rest)
{
    uint8_t body[sizeof(chain->bytes) + ICMP_LEN + ECHO_DATA];
    size_t len = net_echo(frame, path, rest, "chained!", ECHO_DATA);

    memcpy(body, chain->bytes, chain->len_bytes);
    memcpy(body + chain->len_bytes, frame + len - ICMP_LEN - ECHO_DATA,
           ICMP_LEN + ECHO_DATA);
    return packet_ip(frame, path,
                     chain->len_bytes != 0 ? chain->first : IP_PROTOCOL_ICMPV6,
                     body, chain->len_bytes + ICMP_LEN + ECHO_DATA);
}

/* ---- Fragments. */

struct net_whole *net_whole_echo(struct conf *conf, bool is_v6, size_t data_len)
{
    struct net_whole *whole = conf_alloc(conf, sizeof(*whole));
    struct icmp icmp = {.type =
                            is_v6 ? ICMPV6_ECHO_REQUEST : ICMP_ECHO_REQUEST};

    whole->path = net_path0(conf, is_v6);
    whole->path.may_fragment = true;
    whole->rest = icmp.rest = net_rest(conf);
    whole->id = (uint32_t)conf_random(conf);
    whole->len_bytes = ICMP_LEN + data_len;
    whole->message = conf_alloc(conf, whole->len_bytes + 8);
    net_pattern(whole->message + ICMP_LEN, data_len);
    if (is_v6) {
        icmpv6_emit(&icmp, &whole->path.src, &whole->path.dst, whole->message,
                    whole->len_bytes);
    } else {
        icmp_emit(&icmp, whole->message, whole->len_bytes);
    }
    return whole;
}

void net_send_piece(struct conf *conf, const struct net_whole *whole, size_t at,
                    size_t len, bool more)
{
    uint8_t *frame = conf_alloc(conf, FRAME_LEN_MAX);
    uint8_t *body = conf_alloc(conf, IPV6_FRAGMENT_LEN + len);
    struct packet_path path = whole->path;
    size_t frame_len;

    if (ip_addr_is_v4(&path.dst)) {
        path.ip_id = (uint16_t)whole->id;
        frame_len =
            packet_ip(frame, &path, IP_PROTOCOL_ICMP, whole->message + at, len);
        put_be16(net_ip(frame) + IPV4_FRAGMENT,
                 (uint16_t)((more ? 0x2000 : 0) | at / 8));
        net_mend_ipv4(frame);
    } else {
        struct ipv6_fragment header = {
            .id = whole->id,
            .offset_bytes = (uint16_t)at,
            .next_header = IP_PROTOCOL_ICMPV6,
            .more_fragments = more,
        };

        ipv6_fragment_emit(&header, body);
        memcpy(body + IPV6_FRAGMENT_LEN, whole->message + at, len);
        frame_len = packet_ip(frame, &path, IPV6_EXT_FRAGMENT, body,
                              IPV6_FRAGMENT_LEN + len);
    }
    net_send(conf, frame, frame_len);
}

/* A fragment from the target to the sender of `whole`. */
static bool is_piece(const struct packet *packet, const void *ctx)
{
    const struct net_whole *whole = ctx;

    return packet->has_ip && packet->is_fragment &&
           packet->protocol ==
               (packet->is_v6 ? IP_PROTOCOL_ICMPV6 : IP_PROTOCOL_ICMP) &&
           ip_addr_equal(&packet->dst, &whole->path.src);
}

static uint32_t piece_id(const struct packet *packet)
{
    return packet->is_v6
               ? get_be32(packet->l4 - IPV6_FRAGMENT_LEN + IPV6_FRAGMENT_ID)
               : packet->ip_id;
}

static bool is_answer(const struct packet *packet, const void *ctx)
{
    const struct net_whole *whole = ctx;

    return is_piece(packet, ctx) || net_is_reply(packet, &whole->rest);
}

/* Take all fragments of the reply. @return the number of bytes */
static size_t take_pieces(struct conf *conf, const struct net_whole *whole,
                          uint8_t *reply)
{
    size_t total = 0, got = 0;
    uint32_t id = 0;
    bool is_first = true;

    do {
        const struct packet *piece =
            conf_take(conf, "a fragment of the reply", is_piece, whole);
        size_t end = piece->fragment_offset_bytes + piece->l4_len;

        conf_check(conf,
                   piece->len_bytes <=
                       ETH_LEN + (size_t)conf_target(conf)->mtu_bytes,
                   "a fragment is longer than the link's MTU");
        conf_check(conf, is_first || piece_id(piece) == id,
                   "the fragments' identifications differ");
        conf_check(conf, !piece->more_fragments || piece->l4_len % 8 == 0,
                   "a fragment that is not the last has %zu bytes",
                   piece->l4_len);
        conf_check(conf, end <= whole->len_bytes,
                   "the reply is longer than the request");
        memcpy(reply + piece->fragment_offset_bytes, piece->l4, piece->l4_len);
        id = piece_id(piece);
        is_first = false;
        got += piece->l4_len;
        if (!piece->more_fragments) {
            total = end;
        }
    } while (total == 0 || got < total);
    conf_equal(conf, "number of bytes in all fragments", got, total);
    return total;
}

void net_take_whole(struct conf *conf, const struct net_whole *whole)
{
    const struct ip_addr *src = &whole->path.dst, *dst = &whole->path.src;
    bool is_v6 = !ip_addr_is_v4(dst);
    size_t header = is_v6 ? (size_t)IPV6_LEN : (size_t)IPV4_LEN, len;
    uint8_t *reply;
    struct icmp icmp;

    if (header + whole->len_bytes <= conf_target(conf)->mtu_bytes) {
        net_take_reply(conf, &whole->path, whole->rest,
                       whole->message + ICMP_LEN, whole->len_bytes - ICMP_LEN);
        return;
    }
    reply = conf_alloc(conf, whole->len_bytes);
    len = take_pieces(conf, whole, reply);
    conf_equal(conf, "length of the reply", len, whole->len_bytes);
    conf_check(conf,
               is_v6 ? icmpv6_parse(&icmp, src, dst, reply, len)
                     : icmp_parse(&icmp, reply, len),
               "the reply's checksum is wrong");
    conf_equal(conf, "type", icmp.type,
               is_v6 ? ICMPV6_ECHO_REPLY : ICMP_ECHO_REPLY);
    conf_equal(conf, "identifier and sequence number", icmp.rest, whole->rest);
    conf_same(conf, "echo data", reply + ICMP_LEN, whole->message + ICMP_LEN,
              len - ICMP_LEN);
}

void net_expect_no_whole(struct conf *conf, const struct net_whole *whole)
{
    net_expect_none(conf, 0, "answer to an incomplete packet", is_answer,
                    whole);
}
