/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The bytes that a port has received and that the switch has not yet passed on.
 * Frames that are still on a cable with a delay are here, too.
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
    uint32_t first; /* number of the oldest whole frame; wraps at 2^32 */
    uint32_t count; /* whole frames */
};

enum rx_lane_next {
    RX_LANE_FRAME,   /* a whole frame, which rx_lane_push() takes */
    RX_LANE_PARTIAL, /* the next frame is incomplete, or `frames` is full */
    RX_LANE_BROKEN,  /* a length that no frame has */
};

/**
 * Where to put received bytes.
 *
 * @return the number of bytes that fit; 0: the lane is full
 */
MUST_USE uint32_t rx_lane_room(struct rx_lane *lane, uint8_t **at);

/**
 * Look at the bytes that follow the whole frames.
 *
 * @param frame  for RX_LANE_FRAME: where the frame begins, after its length
 * @param len    for RX_LANE_FRAME: the frame's length
 */
MUST_USE enum rx_lane_next rx_lane_next(const struct rx_lane *lane,
                                        const uint8_t **frame, uint32_t *len);

/** Append the frame that rx_lane_next() found to the whole frames. */
void rx_lane_push(struct rx_lane *lane, uint32_t len, struct rx_frame frame);

/** @return the oldest whole frame, with its bytes; NULL: none */
MUST_USE const struct rx_frame *rx_lane_head(const struct rx_lane *lane,
                                             const uint8_t **data,
                                             uint32_t *len);

/** Remove the oldest whole frame. */
void rx_lane_pop(struct rx_lane *lane);

/**
 * Drop the incomplete frame at the end.  Whole frames stay, also those that
 * wait for room in `frames`.
 *
 * @return the number of bytes that were dropped
 */
uint32_t rx_lane_cut(struct rx_lane *lane);

#endif
