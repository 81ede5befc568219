/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ends the TCP connections that the target still has after a test: each 4-tuple
 * on which the target has sent, and whose last segment is no RST, gets a RST.
 *
 * The RST's sequence number is the one that the target expects, as its last
 * segment says; with any other it would only be challenged (RFC 9293 3.10.7.4).
 * A connection that is over already gets a RST too, which does no harm.
 */
#include "leave_tcp.h"

#include <string.h>

#include "internal.h"
#include "lib/bytes.h"
#include "net/wire/tcp.h"

enum {
    PROTOCOL_TCP = 6,
    CHECKSUM_AT = 16,
};

static bool parse_segment(struct tcp_header *tcp, const struct packet *packet)
{
    return packet->has_ip && !packet->is_fragment &&
           packet->protocol == PROTOCOL_TCP &&
           tcp_header_parse(tcp, packet->l4, packet->l4_len);
}

/* Whether a later packet belongs to the same connection. */
static bool is_followed(const struct conf_rx *rx, const struct tcp_header *tcp)
{
    for (const struct conf_rx *next = rx->next; next != NULL;
         next = next->next) {
        struct tcp_header later;

        if (next->packet.port == rx->packet.port &&
            parse_segment(&later, &next->packet) &&
            later.src_port == tcp->src_port &&
            later.dst_port == tcp->dst_port &&
            ip_addr_equal(&next->packet.src, &rx->packet.src) &&
            ip_addr_equal(&next->packet.dst, &rx->packet.dst)) {
            return true;
        }
    }
    return false;
}

static void send_rst(struct conf *conf, const struct packet *last,
                     const struct tcp_header *tcp)
{
    const struct packet_path path = {
        .src_mac = last->eth.dst,
        .dst_mac = last->eth.src,
        .src = last->dst,
        .dst = last->src,
        .tagged = last->eth.tagged,
        .vlan = last->eth.vlan,
        .priority = last->eth.priority,
    };
    const struct tcp_header rst = {
        .src_port = tcp->dst_port,
        .dst_port = tcp->src_port,
        .seq = tcp->ack,
        .ack = tcp->seq,
        .flags = TCP_RST | TCP_ACK,
    };
    uint8_t segment[TCP_LEN_MAX], frame[FRAME_LEN_MAX];
    size_t len = tcp_header_emit(&rst, segment);

    put_be16(segment + CHECKSUM_AT,
             tcp_checksum(&path.src, &path.dst, segment, len));
    conf_send_frame(conf, last->port, frame,
                    packet_ip(frame, &path, PROTOCOL_TCP, segment, len), 0);
}

void leave_tcp(struct conf *conf)
{
    for (const struct conf_rx *rx = conf->rx; rx != NULL; rx = rx->next) {
        struct tcp_header tcp;

        if (parse_segment(&tcp, &rx->packet) && (tcp.flags & TCP_RST) == 0 &&
            !is_followed(rx, &tcp)) {
            send_rst(conf, &rx->packet, &tcp);
        }
    }
}
