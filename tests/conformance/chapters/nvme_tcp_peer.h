/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the chapter `nvme-tcp` talks with: a stream of bytes over TCP, in the
 * segments of tcp_peer.h.  It acknowledges what comes and keeps within the
 * drive's window; nothing here knows PDUs.
 * Spec: RFC 9293.
 */
#ifndef ESSD_CONFORM_NVME_TCP_PEER_H
#define ESSD_CONFORM_NVME_TCP_PEER_H

#include "tcp_peer.h"

enum {
    STREAM_PORT = 4420,
    STREAM_ROOM = 2 * 1024 * 1024, /* bytes that nobody has taken yet */
};

struct stream {
    struct tcp_peer peer;
    bool is_open;
    bool is_mute;               /* acknowledges nothing */
    bool is_finished, is_reset; /* by the drive */
    bool has_finished;          /* this end has sent a FIN */
    uint32_t sent, acked;       /* bytes */
    uint32_t window;            /* that the drive has told last */
    uint16_t own_window;
    uint32_t got, taken; /* bytes of the drive */
    uint32_t kept_from;  /* the first one in `bytes` */
    uint8_t *bytes;      /* STREAM_ROOM, once the first byte has come */
};

/** NVMe/TCP is off by default: a drive that does not listen is restarted with
 * it. */
void nvme_tcp_service_start(struct conf *conf);

/** Whether the target accepts connections to STREAM_PORT. */
bool stream_port_listens(struct conf *conf);

/** A TCP port that no earlier connection of the run has had. */
uint16_t nvme_tcp_own_port(const struct conf *conf, unsigned int number);

/** Connect; the test fails if the drive does not accept. */
void stream_open(struct stream *stream, unsigned int index, unsigned int port,
                 bool is_v6, uint16_t own_port, uint16_t drive_port);

/** The same for a peer that has sent nothing yet. */
void stream_open_peer(struct stream *stream, const struct tcp_peer *peer);

/** Send bytes, `piece` of them in each segment at most; 0: as many as fit. */
void stream_send(struct stream *stream, const void *bytes, size_t len,
                 uint32_t piece);
void stream_send_flags(struct stream *stream, uint8_t flags);

/** Take a segment, if one comes in time. */
bool stream_poll(struct stream *stream, uint64_t timeout_us);

/** The drive's next bytes, which must come.  They are valid until the next call
 * for this stream. */
const uint8_t *stream_take(struct stream *stream, uint32_t len);

/** Bytes that have come and were not taken. */
static inline uint32_t stream_ready(const struct stream *stream)
{
    return stream->got - stream->taken;
}

#endif
