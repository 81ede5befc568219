/* SPDX-License-Identifier: BSD-2-Clause */
#include "tcp_peer.h"

#include <stdlib.h>
#include <string.h>

enum {
    HEADER = 20,
    PROTOCOL_TCP = 6,
    IPV4_HEADER = 20,
    FRAGMENT_AT = 6, /* Offset of the field in the header. */
    IPV4_MORE = 0x2000,
    CHECKSUM_AT = 10,
    IP_OPTIONS = 4,
    SEGMENT_MAX = 9100,
    FIRST_ISN = 0xfffffc00, /* Numbers wrap after 1 KiB. */
    NO_ISS = 0x20000000,
    WINDOW = 65535,
    SYN_MSS = 1000,
};

/* ---- Bytes. */

static uint16_t word_at(const uint8_t *p)
{
    return (uint16_t)(p[0] << 8 | p[1]);
}

static uint32_t long_at(const uint8_t *p)
{
    return (uint32_t)word_at(p) << 16 | word_at(p + 2);
}

static void put_word(uint8_t *p, unsigned int value)
{
    p[0] = (uint8_t)(value >> 8);
    p[1] = (uint8_t)value;
}

static void put_long(uint8_t *p, uint32_t value)
{
    put_word(p, value >> 16);
    put_word(p + 2, value & 0xffff);
}

/* RFC 1071: the sum of 16-bit words; an odd byte is a high one. */
static uint32_t add_words(uint32_t sum, const uint8_t *p, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        sum += i % 2 == 0 ? (uint32_t)p[i] << 8 : p[i];
    }
    return sum;
}

static uint16_t fold_sum(uint32_t sum)
{
    while (sum > 0xffff) {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    return (uint16_t)sum;
}

/* With the pseudo header of RFC 9293 section 3.1 (RFC 8200 section 8.1). */
static uint16_t segment_sum(const struct ip_addr *src,
                            const struct ip_addr *dst, const uint8_t *segment,
                            size_t len)
{
    bool is_v4 = ip_addr_is_v4(src);
    size_t at = is_v4 ? 12 : 0;
    uint32_t sum = PROTOCOL_TCP + (uint32_t)len;

    sum = add_words(sum, src->bytes + at, 16 - at);
    sum = add_words(sum, dst->bytes + at, 16 - at);
    return fold_sum(add_words(sum, segment, len));
}

uint8_t tcp_peer_byte(uint32_t at)
{
    return (uint8_t)(at * 7 + at / 256 * 13 + 3);
}

size_t tcp_peer_mss(uint8_t *to, uint16_t mss)
{
    to[0] = 2;
    to[1] = 4;
    put_word(to + 2, mss);
    return 4;
}

size_t tcp_peer_times(uint8_t *to, uint32_t tsval, uint32_t tsecr)
{
    to[0] = 8;
    to[1] = 10;
    put_long(to + 2, tsval);
    put_long(to + 6, tsecr);
    return 10;
}

/* ---- Peers. */

struct tcp_peer tcp_peer_new(struct conf *conf, unsigned int index,
                             unsigned int port, bool is_v6, uint16_t own_port,
                             uint16_t drive_port)
{
    const struct conf_peer *peer = conf_peer(conf, index, port);

    conf_needs_ip(conf, port, is_v6);
    return (struct tcp_peer){
        .conf = conf,
        .port = port,
        .path =
            {
                .src_mac = peer->mac,
                .dst_mac = conf_target(conf)->ports[port].mac,
                .src = is_v6 ? peer->ip6 : peer->ip4,
                .dst = *conf_target_ip(conf, port, is_v6),
            },
        .own_port = own_port,
        .drive_port = drive_port,
        .isn = FIRST_ISN,
        .iss = NO_ISS,
    };
}

struct tcp_peer tcp_peer_stranger(struct conf *conf, unsigned int number,
                                  uint16_t drive_port)
{
    struct conf_peer stranger = conf_stranger(conf, number, 0);
    struct tcp_peer peer =
        tcp_peer_new(conf, 0, 0, false, (uint16_t)(1024 + number), drive_port);

    peer.path.src_mac = stranger.mac;
    peer.path.src = stranger.ip4;
    return peer;
}

/* ---- Out. */

/* @return the length of the segment */
static size_t put_segment(const struct tcp_peer *peer,
                          const struct tcp_peer_out *out, uint8_t *to)
{
    size_t header = HEADER + (out->options_len + 3) / 4 * 4;
    size_t len = header + out->len;
    uint16_t sum;

    ASSERT(out->options_len <= TCP_PEER_OPTIONS && len <= SEGMENT_MAX);
    memset(to, 0, header);
    put_word(to, peer->own_port);
    put_word(to + 2, peer->drive_port);
    put_long(to + 4, out->seq);
    put_long(to + 8, out->ack);
    to[12] =
        (uint8_t)((out->data_offset != 0 ? out->data_offset : header / 4) << 4);
    to[13] = out->flags;
    put_word(to + 14, out->window);
    put_word(to + 18, out->urgent);
    memcpy(to + HEADER, out->options, out->options_len);
    if (out->len != 0) {
        memcpy(to + header, out->data, out->len);
    }
    len -= out->cut_bytes;
    sum = (uint16_t)~segment_sum(&peer->path.src, &peer->path.dst, to, len);
    /* An urgent pointer without URG means nothing: it may complete the sum. */
    put_word(to + (out->has_zero_sum ? 18 : 16), sum ^ out->checksum_xor);
    return len;
}

static void mend_ipv4(uint8_t *ip, size_t header)
{
    put_word(ip + CHECKSUM_AT, 0);
    put_word(ip + CHECKSUM_AT, (uint16_t)~fold_sum(add_words(0, ip, header)));
}

/* A part of a segment in an IPv4 packet. @param offset of its first byte */
static void send_fragment(const struct tcp_peer *peer,
                          const struct packet_path *path, const uint8_t *part,
                          size_t len, size_t offset, bool more)
{
    uint8_t frame[FRAME_LEN_MAX];
    size_t frame_len = packet_ip(frame, path, PROTOCOL_TCP, part, len);
    uint8_t *ip = frame + frame_len - len - IPV4_HEADER;

    put_word(ip + FRAGMENT_AT,
             (unsigned int)(offset / 8) | (more ? IPV4_MORE : 0));
    mend_ipv4(ip, IPV4_HEADER);
    conf_send_frame(peer->conf, peer->port, frame, frame_len, 0);
}

static void send_with_ip_options(const struct tcp_peer *peer,
                                 const struct packet_path *path,
                                 const uint8_t *segment, size_t len)
{
    uint8_t payload[IP_OPTIONS + SEGMENT_MAX];
    uint8_t frame[FRAME_LEN_MAX];
    size_t frame_len;
    uint8_t *ip;

    memset(payload, 1, IP_OPTIONS); /* No operation, RFC 791. */
    memcpy(payload + IP_OPTIONS, segment, len);
    frame_len = packet_ip(frame, path, PROTOCOL_TCP, payload, IP_OPTIONS + len);
    ip = frame + frame_len - len - IP_OPTIONS - IPV4_HEADER;
    ip[0] = 0x46; /* Six words. */
    mend_ipv4(ip, IPV4_HEADER + IP_OPTIONS);
    conf_send_frame(peer->conf, peer->port, frame, frame_len, 0);
}

void tcp_peer_send(const struct tcp_peer *peer, const struct tcp_peer_out *out)
{
    uint8_t segment[SEGMENT_MAX], frame[FRAME_LEN_MAX];
    struct packet_path path = peer->path;
    size_t len = put_segment(peer, out, segment);

    path.tos = out->tos;
    if (out->fragment_at != 0) {
        send_fragment(peer, &path, segment, out->fragment_at, 0, true);
        send_fragment(peer, &path, segment + out->fragment_at,
                      len - out->fragment_at, out->fragment_at, false);
    } else if (out->has_ip_options) {
        send_with_ip_options(peer, &path, segment, len);
    } else {
        conf_send_frame(peer->conf, peer->port, frame,
                        packet_ip(frame, &path, PROTOCOL_TCP, segment, len), 0);
    }
}

/* ---- In. */

static bool is_for_peer(const struct packet *packet, const void *ctx)
{
    const struct tcp_peer *peer = ctx;

    return packet->port == peer->port && packet->has_ip &&
           packet->protocol == PROTOCOL_TCP && packet->l4_len >= HEADER &&
           mac_addr_equal(&packet->eth.dst, &peer->path.src_mac) &&
           ip_addr_equal(&packet->src, &peer->path.dst) &&
           ip_addr_equal(&packet->dst, &peer->path.src) &&
           word_at(packet->l4) == peer->drive_port &&
           word_at(packet->l4 + 2) == peer->own_port;
}

static void read_blocks(struct tcp_peer_in *in, const uint8_t *value,
                        size_t len)
{
    for (size_t i = 0; i < len / 8 && i < TCP_PEER_BLOCKS; i++) {
        in->blocks[i].left = long_at(value + 8 * i);
        in->blocks[i].right = long_at(value + 8 * i + 4);
        in->num_blocks++;
    }
}

/* @return false: the drive does not know this option, or its length is wrong */
static bool read_option(struct tcp_peer_in *in, uint8_t kind,
                        const uint8_t *value, size_t len)
{
    switch (kind) {
    case 2:
        in->has_mss = true;
        in->mss = word_at(value);
        return len == 2;
    case 3:
        in->has_shift = true;
        in->shift = value[0];
        return len == 1;
    case 4:
        in->has_sack_permitted = true;
        return len == 0;
    case 5:
        read_blocks(in, value, len);
        return len != 0 && len % 8 == 0;
    case 8:
        in->has_times = true;
        in->tsval = long_at(value);
        in->tsecr = long_at(value + 4);
        return len == 8;
    default:
        return false;
    }
}

static void read_options(struct conf *conf, struct tcp_peer_in *in,
                         const uint8_t *p, size_t len)
{
    size_t at = 0;

    while (at < len && p[at] != 0) {
        if (p[at] == 1) {
            at++;
            continue;
        }
        conf_check(conf,
                   at + 2 <= len && p[at + 1] >= 2 && at + p[at + 1] <= len &&
                       read_option(in, p[at], p + at + 2, p[at + 1] - 2u),
                   "an option of kind %u in the drive's segment is wrong",
                   p[at]);
        at += p[at + 1];
    }
}

static void read_segment(struct conf *conf, struct tcp_peer_in *in)
{
    const struct packet *packet = in->packet;
    const uint8_t *p = packet->l4;
    size_t header = (size_t)(p[12] >> 4) * 4;

    conf_check(conf,
               segment_sum(&packet->src, &packet->dst, p, packet->l4_len) ==
                   0xffff,
               "the checksum of the drive's segment is wrong");
    conf_check(conf, header >= HEADER && header <= packet->l4_len,
               "the data offset of the drive's segment is %u", p[12] >> 4);
    conf_equal(conf, "reserved bits", p[12] & 0x0f, 0);
    conf_equal(conf, "urgent pointer", word_at(p + 18), 0);
    in->seq = long_at(p + 4);
    in->ack = long_at(p + 8);
    in->flags = p[13];
    in->window = word_at(p + 14);
    in->data = p + header;
    in->len = (uint32_t)(packet->l4_len - header);
    read_options(conf, in, p + HEADER, header - HEADER);
}

bool tcp_peer_take(const struct tcp_peer *peer, struct tcp_peer_in *in,
                   uint64_t timeout_us)
{
    const struct packet *packet =
        timeout_us != 0
            ? conf_take_within(peer->conf, is_for_peer, peer, timeout_us)
            : conf_take(peer->conf, "a segment of the drive", is_for_peer,
                        peer);

    if (packet == NULL) {
        return false;
    }
    *in = (struct tcp_peer_in){.packet = packet};
    read_segment(peer->conf, in);
    return true;
}

struct counted {
    const struct tcp_peer *peer;
    uint8_t flags;
};

static bool is_counted(const struct packet *packet, const void *ctx)
{
    const struct counted *counted = ctx;

    return is_for_peer(packet, counted->peer) &&
           packet->l4[13] == counted->flags;
}

unsigned int tcp_peer_count(const struct tcp_peer *peer, uint8_t flags)
{
    struct counted counted = {peer, flags};

    return conf_count(peer->conf, is_counted, &counted);
}

/* ---- The services. */

/* A change of the services is in force as soon as it is saved. */
void tcp_peer_services(struct conf *conf, bool are_on)
{
    const char *answer;

    (void)conf_console(conf, are_on ? "config set tcp.echo on"
                                    : "config set tcp.echo off");
    answer = conf_console(conf, "config save");
    if (strncmp(answer, "ok", 2) != 0 && strstr(answer, "\nok") == NULL) {
        conf_not_run(conf, "the setting tcp.echo cannot be saved: %.80s",
                     answer);
    }
}

void tcp_peer_begin(struct conf *conf)
{
    if (!conf_target(conf)->is_virtual) { /* a failed test leaves them on */
        tcp_peer_services(conf, false);
    }
    tcp_peer_services(conf, true);
}

void tcp_peer_end(struct conf *conf)
{
    if (!conf_target(conf)->is_virtual) {
        tcp_peer_services(conf, false);
    }
}

/* ---- Handshakes. */

void tcp_peer_syn(struct tcp_peer *peer)
{
    struct tcp_peer_out out = {
        .seq = peer->isn, .flags = SEG_SYN, .window = WINDOW};

    out.options_len = tcp_peer_mss(out.options, SYN_MSS);
    tcp_peer_send(peer, &out);
}

void tcp_peer_ack(const struct tcp_peer *peer)
{
    tcp_peer_send(peer, &(struct tcp_peer_out){.seq = peer->isn + 1,
                                               .ack = peer->iss + 1,
                                               .flags = SEG_ACK,
                                               .window = WINDOW});
}

void tcp_peer_open(struct tcp_peer *peer)
{
    struct tcp_peer_in in;

    tcp_peer_syn(peer);
    (void)tcp_peer_take(peer, &in, 0);
    conf_equal(peer->conf, "flags of the answer to a SYN", in.flags,
               SEG_SYN | SEG_ACK);
    conf_equal(peer->conf, "acknowledgement", in.ack, peer->isn + 1);
    peer->iss = in.seq;
    tcp_peer_ack(peer);
}

void tcp_peer_echo(struct tcp_peer *peer, uint32_t len)
{
    uint8_t *data = conf_alloc(peer->conf, len);
    struct tcp_peer_in in;
    uint32_t got = 0;

    for (uint32_t i = 0; i < len; i++) {
        data[i] = tcp_peer_byte(i);
    }
    tcp_peer_send(peer, &(struct tcp_peer_out){.seq = peer->isn + 1,
                                               .ack = peer->iss + 1,
                                               .flags = SEG_ACK | SEG_PSH,
                                               .window = WINDOW,
                                               .data = data,
                                               .len = len});
    while (got < len) {
        (void)tcp_peer_take(peer, &in, 0);
        conf_check(peer->conf, (in.flags & SEG_RST) == 0,
                   "the drive has reset the connection");
        if (in.len != 0 && in.seq == peer->iss + 1 + got) {
            conf_check(peer->conf, got + in.len <= len, "too many bytes");
            conf_same(peer->conf, "echoed bytes", in.data, data + got, in.len);
            got += in.len;
        }
    }
    tcp_peer_send(peer, &(struct tcp_peer_out){.seq = peer->isn + 1 + len,
                                               .ack = peer->iss + 1 + len,
                                               .flags = SEG_ACK,
                                               .window = WINDOW});
}
