/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The host's end of a TCP connection to a drive, on a cable that loses nothing:
 * it keeps to the drive's window, and acknowledges what has come.
 */
#ifndef ESSD_TESTS_BENCH_TCP_END_H
#define ESSD_TESTS_BENCH_TCP_END_H

#include "hw-model/core/frame.h"

enum {
    TCP_END_MSS = 1460,
    TCP_END_STREAM = 1 << 20, /* most bytes that wait, each way */
};

struct tcp_end {
    /* Set by the caller. */
    struct frame_sink sink;
    uint8_t drive_mac[6];
    uint32_t drive_ip, host_ip;
    uint16_t port, drive_port;

    bool is_open;
    uint32_t snd_una, snd_nxt, rcv_nxt, acked;
    uint32_t window; /* of the drive */
    uint32_t len;    /* bytes in `bytes` that the caller has not taken */
    uint8_t bytes[TCP_END_STREAM];
    uint32_t queued, queue_at; /* bytes that wait for the window */
    uint8_t queue[TCP_END_STREAM];
};

/** Send a SYN; `is_open` is true when it has been answered. */
void tcp_end_open(struct tcp_end *end);

/** Send bytes as soon as the window allows. */
void tcp_end_send(struct tcp_end *end, const uint8_t *bytes, size_t len);

/** Take a frame, if it is for this end. */
void tcp_end_take(struct tcp_end *end, const struct frame_rx *frame);

/** Acknowledge the frames that were taken. */
void tcp_end_ack(struct tcp_end *end);

/** Drop the first bytes of `bytes`. */
void tcp_end_drop(struct tcp_end *end, uint32_t len);

#endif
