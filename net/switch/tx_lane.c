/* SPDX-License-Identifier: BSD-2-Clause */
/* Output queue of one port: see tx_lane.h. */
#include "net/switch/tx_lane.h"

#include <string.h>

#include "lib/bytes.h"
#include "net/switch/switch.h"

static struct tx_frame *tx_lane_slot(const struct tx_lane *lane, uint32_t index)
{
    return &lane->frames[index & (lane->frame_room - 1)];
}

bool tx_lane_has_room(const struct tx_lane *lane, uint32_t len)
{
    return lane->count < lane->frame_room &&
           lane->size - lane->used >= SWITCH_PREFIX + len;
}

static void tx_lane_copy(struct tx_lane *lane, const uint8_t *data,
                         uint32_t len)
{
    uint32_t at = (lane->head + lane->used) % lane->size;
    uint32_t before_end = MIN(len, lane->size - at);

    memcpy(lane->buf + at, data, before_end);
    memcpy(lane->buf, data + before_end, len - before_end);
    lane->used += len;
}

void tx_lane_push(struct tx_lane *lane, const uint8_t *header,
                  uint32_t header_len, const uint8_t *payload,
                  uint32_t payload_len, uint64_t leaves_ns)
{
    uint32_t len = header_len + payload_len;
    uint8_t prefix[SWITCH_PREFIX];

    ASSERT(tx_lane_has_room(lane, len));
    put_be32(prefix, len);
    *tx_lane_slot(lane, lane->first + lane->count) =
        (struct tx_frame){.leaves_ns = leaves_ns, .len = len};
    lane->count++;
    tx_lane_copy(lane, prefix, sizeof(prefix));
    tx_lane_copy(lane, header, header_len);
    tx_lane_copy(lane, payload, payload_len);
}

void tx_lane_release(struct tx_lane *lane, uint64_t now_ns)
{
    while (lane->ready_count < lane->count) {
        const struct tx_frame *frame =
            tx_lane_slot(lane, lane->first + lane->ready_count);

        if (frame->leaves_ns > now_ns) {
            return;
        }
        lane->ready_count++;
        lane->ready_bytes += SWITCH_PREFIX + frame->len;
    }
}

uint64_t tx_lane_deadline_ns(const struct tx_lane *lane)
{
    return lane->ready_count < lane->count
               ? tx_lane_slot(lane, lane->first + lane->ready_count)->leaves_ns
               : UINT64_MAX;
}

uint64_t tx_lane_head_ns(const struct tx_lane *lane)
{
    return lane->count != 0 ? tx_lane_slot(lane, lane->first)->leaves_ns : 0;
}

static void tx_lane_pieces(const struct tx_lane *lane, uint32_t offset,
                           uint32_t len, struct tx_piece piece[2])
{
    uint32_t at = (lane->head + offset) % lane->size;
    uint32_t before_end = MIN(len, lane->size - at);

    piece[0] = (struct tx_piece){lane->buf + at, before_end};
    piece[1] = (struct tx_piece){lane->buf, len - before_end};
}

size_t tx_lane_bytes(const struct tx_lane *lane, struct tx_piece piece[2])
{
    uint32_t len = lane->ready_bytes - lane->sent;

    tx_lane_pieces(lane, lane->sent, len, piece);
    return len;
}

uint32_t tx_lane_frame(const struct tx_lane *lane, uint32_t number,
                       struct tx_piece piece[2])
{
    uint32_t offset = 0;

    ASSERT(number < lane->ready_count);
    for (uint32_t i = 0; i < number; i++) {
        offset += SWITCH_PREFIX + tx_lane_slot(lane, lane->first + i)->len;
    }
    tx_lane_pieces(lane, offset + SWITCH_PREFIX,
                   tx_lane_slot(lane, lane->first + number)->len, piece);
    return tx_lane_slot(lane, lane->first + number)->len;
}

bool tx_lane_advance(struct tx_lane *lane, size_t *n)
{
    uint32_t rest =
        SWITCH_PREFIX + tx_lane_slot(lane, lane->first)->len - lane->sent;

    ASSERT(*n <= lane->ready_bytes - lane->sent);
    if (*n < rest) {
        lane->sent += (uint32_t)*n;
        *n = 0;
        return false;
    }
    lane->sent += rest;
    *n -= rest;
    return true;
}

void tx_lane_pop(struct tx_lane *lane)
{
    uint32_t bytes;

    ASSERT(lane->count != 0);
    bytes = SWITCH_PREFIX + tx_lane_slot(lane, lane->first)->len;
    if (lane->ready_count != 0) {
        lane->ready_count--;
        lane->ready_bytes -= bytes;
    }
    lane->head = (lane->head + bytes) % lane->size;
    lane->used -= bytes;
    lane->first++;
    lane->count--;
    lane->sent = 0;
    if (lane->used == 0) {
        /* A lane with few bytes uses the same ones again: they stay cached. */
        lane->head = 0;
    }
}

uint32_t tx_lane_drop(struct tx_lane *lane, bool keep_begun)
{
    bool keep = keep_begun && lane->sent != 0;
    uint32_t dropped = lane->count - keep;

    if (!keep) {
        lane->used = lane->head = lane->sent = 0;
        lane->count = lane->ready_count = lane->ready_bytes = 0;
        return dropped;
    }
    lane->count = lane->ready_count = 1;
    lane->used = lane->ready_bytes =
        SWITCH_PREFIX + tx_lane_slot(lane, lane->first)->len;
    return dropped;
}
