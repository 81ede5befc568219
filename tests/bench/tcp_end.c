/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/bench/tcp_end.h"

#include <string.h>

#include "lib/bytes.h"
#include "net/wire/eth.h"
#include "net/wire/ipv4.h"
#include "net/wire/tcp.h"

enum {
    FIRST_SEQ = 1000,
    WINDOW = 65535,
    HEADERS = ETH_LEN + IPV4_LEN + TCP_LEN,
};

static void segment_send(struct tcp_end *end, uint8_t flags,
                         const uint8_t *bytes, size_t len)
{
    const struct tcp_header header = {.src_port = end->port,
                                      .dst_port = end->drive_port,
                                      .seq = end->snd_nxt,
                                      .ack = end->rcv_nxt,
                                      .window = WINDOW,
                                      .flags = flags};
    const struct ipv4 ip = {.src = ip_addr_from_v4(end->host_ip),
                            .dst = ip_addr_from_v4(end->drive_ip),
                            .total_len_bytes =
                                (uint16_t)(IPV4_LEN + TCP_LEN + len),
                            .ttl = 64,
                            .protocol = IP_PROTOCOL_TCP};
    uint8_t frame[HEADERS + TCP_END_MSS] = {0};
    uint8_t *tcp = frame + ETH_LEN + IPV4_LEN;
    struct frame_tx tx = {.num_pieces = 1,
                          .pieces = {{frame, (uint32_t)(HEADERS + len)}}};
    bool is_sent;

    memcpy(frame, end->drive_mac, 6);
    memcpy(frame + 6, (uint8_t[]){2, 0, 0, 0, 0, 9, 8, 0}, 8);
    ipv4_emit(&ip, frame + ETH_LEN);
    (void)tcp_header_emit(&header, tcp);
    if (len != 0) {
        memcpy(tcp + TCP_LEN, bytes, len);
    }
    put_be16(tcp + TCP_CHECKSUM, 0);
    put_be16(tcp + TCP_CHECKSUM,
             tcp_checksum(&ip.src, &ip.dst, tcp, TCP_LEN + len));
    is_sent = end->sink.send(end->sink.ctx, &tx, 1) == 1;
    ASSERT(is_sent);
    end->acked = end->rcv_nxt;
    end->snd_nxt += (uint32_t)len + ((flags & TCP_SYN) != 0);
}

void tcp_end_open(struct tcp_end *end)
{
    end->snd_nxt = FIRST_SEQ;
    segment_send(end, TCP_SYN, NULL, 0);
}

/* Send what the drive's window allows. */
static void queue_send(struct tcp_end *end)
{
    while (end->queue_at != end->queued) {
        uint32_t now = MIN(end->queued - end->queue_at, (uint32_t)TCP_END_MSS);

        if (end->snd_nxt + now - end->snd_una > end->window) {
            return;
        }
        segment_send(end, TCP_ACK | TCP_PSH, end->queue + end->queue_at, now);
        end->queue_at += now;
    }
    end->queue_at = 0;
    end->queued = 0;
}

void tcp_end_send(struct tcp_end *end, const uint8_t *bytes, size_t len)
{
    memmove(end->queue, end->queue + end->queue_at,
            end->queued - end->queue_at);
    end->queued -= end->queue_at;
    end->queue_at = 0;
    ASSERT(end->queued + len <= TCP_END_STREAM);
    memcpy(end->queue + end->queued, bytes, len);
    end->queued += (uint32_t)len;
    queue_send(end);
}

void tcp_end_take(struct tcp_end *end, const struct frame_rx *frame)
{
    const uint8_t *tcp = frame->data + ETH_LEN + IPV4_LEN;
    uint32_t head, len;

    if (frame->len_bytes < HEADERS || get_be16(frame->data + 12) != 0x0800 ||
        frame->data[ETH_LEN + 9] != IP_PROTOCOL_TCP ||
        get_be16(tcp + TCP_DST_PORT) != end->port) {
        return;
    }
    end->snd_una = get_be32(tcp + TCP_ACK_NUMBER);
    end->window = get_be16(tcp + TCP_WINDOW);
    if ((tcp[TCP_FLAGS] & TCP_SYN) != 0) {
        end->rcv_nxt = get_be32(tcp + TCP_SEQ) + 1;
        end->is_open = true;
        segment_send(end, TCP_ACK, NULL, 0);
        return;
    }
    ASSERT((tcp[TCP_FLAGS] & (TCP_RST | TCP_FIN)) == 0);
    head = (uint32_t)(tcp[TCP_DATA_OFFSET] >> 4) * 4;
    len = get_be16(frame->data + ETH_LEN + 2) - (uint32_t)IPV4_LEN - head;
    queue_send(end);
    if (len == 0) {
        return;
    }
    ASSERT(get_be32(tcp + TCP_SEQ) == end->rcv_nxt &&
           end->len + len <= TCP_END_STREAM);
    memcpy(end->bytes + end->len, tcp + head, len);
    end->len += len;
    end->rcv_nxt += len;
}

void tcp_end_ack(struct tcp_end *end)
{
    if (end->is_open && end->acked != end->rcv_nxt) {
        segment_send(end, TCP_ACK, NULL, 0);
    }
}

void tcp_end_drop(struct tcp_end *end, uint32_t len)
{
    end->len -= len;
    memmove(end->bytes, end->bytes + len, end->len);
}
