/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Output queue of one port: a ring with the bytes for the socket, each frame
 * preceded by its length, and a ring with the time when each frame leaves the
 * cable and may be written to the socket.
 */
#ifndef ESSD_NET_SWITCH_TX_LANE_H
#define ESSD_NET_SWITCH_TX_LANE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/util.h"

enum {
    TX_LANE_BYTES_PER_FRAME = 256, /* `size` for each entry of `frames` */
};

struct tx_frame {
    uint64_t leaves_ns; /* 0: at once */
    uint32_t len;       /* without prefix */
};

struct tx_lane {
    uint8_t *buf;            /* ring of `size` bytes */
    struct tx_frame *frames; /* ring of `frame_room` */
    uint32_t size;
    uint32_t frame_room;  /* a power of two */
    uint32_t head;        /* place of the first frame's prefix */
    uint32_t used;        /* bytes of all frames, prefixes included */
    uint32_t first;       /* number of the oldest frame; wraps at 2^32 */
    uint32_t count;       /* frames */
    uint32_t sent;        /* bytes of the first frame that the device has */
    uint32_t ready_count; /* frames whose time to leave has come */
    uint32_t ready_bytes; /* bytes of these, prefixes and `sent` included */
};

/* A run of bytes; a ring has at most two of them. */
struct tx_piece {
    const uint8_t *data;
    size_t len;
};

MUST_USE bool tx_lane_has_room(const struct tx_lane *lane, uint32_t len);

/** Queue a frame: its header, then its payload.  tx_lane_has_room() was true.
 */
void tx_lane_push(struct tx_lane *lane, const uint8_t *header,
                  uint32_t header_len, const uint8_t *payload,
                  uint32_t payload_len, uint64_t leaves_ns);

/** Count the frames whose time to leave has come as ready. */
void tx_lane_release(struct tx_lane *lane, uint64_t now_ns);

/** @return when the next frame becomes ready; UINT64_MAX: all are ready */
MUST_USE uint64_t tx_lane_deadline_ns(const struct tx_lane *lane);

/** @return when the first frame becomes or became ready; 0: at once, or none */
MUST_USE uint64_t tx_lane_head_ns(const struct tx_lane *lane);

/** Get the ready bytes that were not sent yet.  @return their number */
MUST_USE size_t tx_lane_bytes(const struct tx_lane *lane,
                              struct tx_piece piece[2]);

/** Get one of the ready frames, without its prefix.  @return its length */
MUST_USE uint32_t tx_lane_frame(const struct tx_lane *lane, uint32_t number,
                                struct tx_piece piece[2]);

/**
 * Count bytes as sent, up to the end of the first frame.
 *
 * @param n  bytes that the device took; in return, those behind the first frame
 * @return true when the first frame was sent completely
 */
MUST_USE bool tx_lane_advance(struct tx_lane *lane, size_t *n);

/** Remove the first frame. */
void tx_lane_pop(struct tx_lane *lane);

/**
 * Drop the frames.  With `keep_begun`, keep a frame of which a part was sent,
 * because the rest has to follow in the stream.
 *
 * @return how many frames were dropped
 */
uint32_t tx_lane_drop(struct tx_lane *lane, bool keep_begun);

#endif
