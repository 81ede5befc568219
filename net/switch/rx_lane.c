/* SPDX-License-Identifier: BSD-2-Clause */
/* Received bytes of one port: see rx_lane.h. */
#include "net/switch/rx_lane.h"

#include <string.h>

#include "lib/bytes.h"
#include "net/switch/switch.h"

_Static_assert(IS_POW2(RX_LANE_FRAMES),
               "an index is masked with RX_LANE_FRAMES - 1");
_Static_assert(RX_LANE_BYTES / 2 > SWITCH_PREFIX + SWITCH_FRAME_MAX,
               "a frame fits into half of the buffer");

static struct rx_frame *rx_lane_slot(const struct rx_lane *lane, uint32_t index)
{
    return &lane->frames[index & (RX_LANE_FRAMES - 1)];
}

/* Move the bytes between head and tail to the beginning of the buffer. */
static void rx_lane_compact(struct rx_lane *lane)
{
    memmove(lane->buf, lane->buf + lane->head, lane->tail - lane->head);
    lane->parsed -= lane->head;
    lane->tail -= lane->head;
    lane->head = 0;
}

/*
 * The bytes of the lane are moved only if the part before them is at least half
 * of the buffer, or if they contain no whole frame.  So each byte is moved a
 * few times at most.  A read into less than SWITCH_RX_WORTH bytes is not worth
 * its system call.
 */
uint32_t rx_lane_room(struct rx_lane *lane, uint8_t **at)
{
    uint32_t room = RX_LANE_BYTES - lane->tail;

    if (lane->head == lane->tail ||
        (room < SWITCH_RX_WORTH &&
         (lane->count == 0 || lane->head >= RX_LANE_BYTES / 2))) {
        rx_lane_compact(lane);
        room = RX_LANE_BYTES - lane->tail;
    }
    *at = lane->buf + lane->tail;
    return room >= SWITCH_RX_WORTH ? room : 0;
}

/* What the received bytes from `at` on are. */
static enum rx_lane_next rx_lane_look(const struct rx_lane *lane, uint32_t at,
                                      uint32_t *len)
{
    uint32_t have = lane->tail - at;

    if (have < SWITCH_PREFIX) {
        return RX_LANE_PARTIAL;
    }
    *len = get_be32(lane->buf + at);
    if (*len > SWITCH_FRAME_MAX) {
        return RX_LANE_BROKEN;
    }
    return have - SWITCH_PREFIX < *len ? RX_LANE_PARTIAL : RX_LANE_FRAME;
}

enum rx_lane_next rx_lane_next(const struct rx_lane *lane,
                               const uint8_t **frame, uint32_t *len)
{
    enum rx_lane_next next = rx_lane_look(lane, lane->parsed, len);

    if (next == RX_LANE_FRAME && lane->count == RX_LANE_FRAMES) {
        return RX_LANE_PARTIAL;
    }
    *frame = lane->buf + lane->parsed + SWITCH_PREFIX;
    return next;
}

void rx_lane_push(struct rx_lane *lane, uint32_t len, struct rx_frame frame)
{
    ASSERT(lane->count < RX_LANE_FRAMES);
    *rx_lane_slot(lane, lane->first + lane->count) = frame;
    lane->count++;
    lane->parsed += SWITCH_PREFIX + len;
}

const struct rx_frame *rx_lane_head(const struct rx_lane *lane,
                                    const uint8_t **data, uint32_t *len)
{
    if (lane->count == 0) {
        return NULL;
    }
    *len = get_be32(lane->buf + lane->head);
    *data = lane->buf + lane->head + SWITCH_PREFIX;
    return rx_lane_slot(lane, lane->first);
}

void rx_lane_pop(struct rx_lane *lane)
{
    ASSERT(lane->count != 0);
    lane->head += SWITCH_PREFIX + get_be32(lane->buf + lane->head);
    lane->first++;
    lane->count--;
}

uint32_t rx_lane_cut(struct rx_lane *lane)
{
    uint32_t end = lane->parsed;
    uint32_t cut, len;

    /* Short frames can fill `frames` before `buf`: some are not parsed yet. */
    while (rx_lane_look(lane, end, &len) == RX_LANE_FRAME) {
        end += SWITCH_PREFIX + len;
    }
    cut = lane->tail - end;
    lane->tail = end;
    return cut;
}
