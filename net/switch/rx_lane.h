/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Bytes that a port received, from the socket to the moment when the switch
 * has passed a frame on.  While a cable has a delay, its frames are here too.
 *
 *   buf:  | free | whole frames | bytes of the next | room |
 *                head         parsed              tail   size
 *
 * Each frame is preceded by its length, SWITCH_PREFIX bytes in network order.
 */
#ifndef ESSD_NET_SWITCH_RX_LANE_H
#define ESSD_NET_SWITCH_RX_LANE_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/util.h"

enum {
    RX_LANE_BYTES = 256 * 1024,
    RX_LANE_FRAMES = 4096, /* a power of two */
};

/* What is known of a whole frame, beside its bytes. */
struct rx_frame {
    uint64_t arrival_ns; /* when it reaches the switch; 0: at once */
    bool lost;           /* the cable lost it */
};

struct rx_lane {
    uint8_t *buf;            /* RX_LANE_BYTES */
    struct rx_frame *frames; /* ring of RX_LANE_FRAMES */
    uint32_t head;
    uint32_t parsed;
    uint32_t tail;
    uint32_t first; /* index of the oldest whole frame; counts on, wraps */
    uint32_t count; /* whole frames */
};

enum rx_lane_next {
    RX_LANE_FRAME,   /* a whole frame, which rx_lane_push() takes */
    RX_LANE_PARTIAL, /* the rest of the next frame has not come, or no place */
    RX_LANE_BROKEN,  /* a length that no frame has */
};

/**
 * Where to put received bytes.
 *
 * @return the number of bytes that fit; 0: the lane is full
 */
MUST_USE uint32_t rx_lane_room(struct rx_lane *lane, uint8_t **at);

/** What follows the whole frames; for RX_LANE_FRAME, with its place. */
MUST_USE enum rx_lane_next rx_lane_next(const struct rx_lane *lane,
                                        const uint8_t **frame, uint32_t *len);

/** The next frame becomes one of the whole frames. */
void rx_lane_push(struct rx_lane *lane, uint32_t len, struct rx_frame frame);

/** @return the oldest whole frame, with its bytes; NULL: none */
MUST_USE const struct rx_frame *rx_lane_head(const struct rx_lane *lane,
                                             const uint8_t **data,
                                             uint32_t *len);

/** The oldest whole frame is done with. */
void rx_lane_pop(struct rx_lane *lane);

/** Drop the bytes behind the whole frames; @return how many these were. */
uint32_t rx_lane_cut(struct rx_lane *lane);

#endif
