/* SPDX-License-Identifier: BSD-2-Clause */
#include "nvme_tcp_peer.h"

#include <string.h>

enum {
    WINDOW = 65535,
    /* The connections of earlier tests may be in TIME-WAIT. */
    FIRST_PORT = 10000,
    PORTS = 48000,
    PORTS_OF_TEST = 48,
    ASK_PORT = PORTS_OF_TEST - 1,
    SILENCE_US = 100000,
    SEGMENT = 1400, /* of the bytes that this end sends */
};

static void segment_send(struct stream *stream, uint8_t flags,
                         const uint8_t *data, size_t len)
{
    const struct tcp_peer *peer = &stream->peer;
    uint32_t fin = stream->has_finished ? 1 : 0;

    tcp_peer_send(peer, &(struct tcp_peer_out){
                            .seq = peer->isn + 1 + stream->sent + fin,
                            .ack = peer->iss + 1 + stream->got +
                                   (stream->is_finished ? 1 : 0),
                            .flags = flags,
                            .window = stream->own_window,
                            .data = data,
                            .len = len,
                        });
    stream->sent += (uint32_t)len;
}

void stream_open_peer(struct stream *stream, const struct tcp_peer *peer)
{
    struct conf *conf = peer->conf;
    struct tcp_peer_in in;

    stream->peer = *peer;
    stream->own_window = WINDOW;
    tcp_peer_syn(&stream->peer);
    (void)tcp_peer_take(&stream->peer, &in, 0);
    conf_equal(conf, "flags of the answer to a SYN", in.flags,
               SEG_SYN | SEG_ACK);
    stream->peer.iss = in.seq;
    stream->window = in.window;
    stream->is_open = true;
    tcp_peer_ack(&stream->peer);
}

void stream_open(struct stream *stream, unsigned int index, unsigned int port,
                 bool is_v6, uint16_t own_port, uint16_t drive_port)
{
    struct tcp_peer peer = tcp_peer_new(stream->peer.conf, index, port, is_v6,
                                        own_port, drive_port);

    stream_open_peer(stream, &peer);
}

/* Bytes that come twice, or too early, are not taken. */
static void bytes_keep(struct stream *stream, const struct tcp_peer_in *in)
{
    struct conf *conf = stream->peer.conf;
    uint32_t at = in->seq - stream->peer.iss - 1;
    uint32_t known = stream->got - at;

    if (stream->bytes == NULL) {
        stream->bytes = conf_alloc(conf, STREAM_ROOM);
    }
    if (known > in->len) {
        return;
    }
    if (stream->got + in->len - known - stream->kept_from > STREAM_ROOM) {
        memmove(stream->bytes,
                stream->bytes + (stream->taken - stream->kept_from),
                stream->got - stream->taken);
        stream->kept_from = stream->taken;
    }
    conf_check(conf,
               stream->got + in->len - known - stream->kept_from <= STREAM_ROOM,
               "the drive sends more than this test takes");
    memcpy(stream->bytes + (stream->got - stream->kept_from), in->data + known,
           in->len - known);
    stream->got += in->len - known;
}

bool stream_poll(struct stream *stream, uint64_t timeout_us)
{
    struct tcp_peer_in in;

    if (!tcp_peer_take(&stream->peer, &in, timeout_us)) {
        return false;
    }
    if ((in.flags & SEG_RST) != 0) {
        stream->is_reset = true;
        return true;
    }
    if ((in.flags & SEG_SYN) != 0) {
        return true; /* sent again */
    }
    stream->window = in.window;
    stream->acked = in.ack - stream->peer.isn - 1;
    if (stream->is_mute) {
        return true;
    }
    if (in.len != 0) {
        bytes_keep(stream, &in);
    }
    if ((in.flags & SEG_FIN) != 0 &&
        in.seq + in.len == stream->peer.iss + 1 + stream->got) {
        stream->is_finished = true;
    }
    if (in.len != 0 || (in.flags & SEG_FIN) != 0) {
        segment_send(stream, SEG_ACK, NULL, 0);
    }
    return true;
}

void stream_send(struct stream *stream, const void *bytes, size_t len,
                 uint32_t piece)
{
    const uint8_t *from = bytes;
    uint32_t most = piece != 0 ? piece : (uint32_t)SEGMENT;

    while (len != 0) {
        uint32_t now = (uint32_t)MIN(len, (size_t)most);

        while (!stream->is_reset &&
               stream->sent + now - stream->acked > stream->window) {
            (void)stream_poll(stream, 0);
        }
        if (stream->is_reset) {
            return;
        }
        segment_send(stream, SEG_ACK | (len == now ? SEG_PSH : 0), from, now);
        from += now;
        len -= now;
    }
}

void stream_send_flags(struct stream *stream, uint8_t flags)
{
    segment_send(stream, flags, NULL, 0);
    stream->has_finished |= (flags & SEG_FIN) != 0;
}

const uint8_t *stream_take(struct stream *stream, uint32_t len)
{
    struct conf *conf = stream->peer.conf;

    while (stream->got - stream->taken < len) {
        conf_check(conf, !stream->is_reset && !stream->is_finished,
                   "the drive has %s the connection; %u bytes came, %u are "
                   "missing",
                   stream->is_reset ? "reset" : "closed",
                   stream->got - stream->taken,
                   len - (stream->got - stream->taken));
        (void)stream_poll(stream, 0);
    }
    stream->taken += len;
    return stream->bytes + (stream->taken - len - stream->kept_from);
}

uint16_t nvme_tcp_own_port(const struct conf *conf, unsigned int number)
{
    ASSERT(number < PORTS_OF_TEST);
    return (uint16_t)(FIRST_PORT +
                      (conf_number(conf) * PORTS_OF_TEST + number) % PORTS);
}

bool stream_port_listens(struct conf *conf)
{
    struct tcp_peer peer = tcp_peer_new(
        conf, 1, 0, false, nvme_tcp_own_port(conf, ASK_PORT), STREAM_PORT);
    struct tcp_peer_in in;

    tcp_peer_syn(&peer);
    if (!tcp_peer_take(&peer, &in, SILENCE_US) || (in.flags & SEG_RST) != 0) {
        return false;
    }
    tcp_peer_send(
        &peer, &(struct tcp_peer_out){.seq = peer.isn + 1, .flags = SEG_RST});
    return true;
}

void nvme_tcp_service_start(struct conf *conf)
{
    const char *answer;

    if (conf_target(conf)->has_iwarp) {
        conf_not_applicable(conf, "TCP port 4420 is iWARP's");
    }
    if (conf_target(conf)->is_virtual || stream_port_listens(conf)) {
        return;
    }
    if (!conf_target(conf)->is_ours) {
        conf_not_applicable(conf, "nothing listens on TCP port 4420");
    }
    (void)conf_console(conf, "config set nvme.tcp on");
    answer = conf_console(conf, "config save");
    if (strncmp(answer, "ok", 2) != 0 && strstr(answer, "\nok") == NULL) {
        conf_not_run(conf, "the setting nvme.tcp cannot be saved: %.80s",
                     answer);
    }
    conf_reset(conf);
}
