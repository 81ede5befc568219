/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Wire faults.  A frame is judged once: a frame for the cable only when the
 * cable takes it, so that a refused frame that the port offers again does not
 * count twice.
 */
#include "hw-model/fault/fault_wire.h"

#include <string.h>

#include "lib/bytes.h"
#include "net/wire/tcp.h"

void fault_wire_init(struct fault_wire *wire,
                     const struct fault_wire_config *config)
{
    wire->config = *config;
}

static uint64_t wire_now_ns(const struct fault_wire *wire)
{
    return wire->config.now_ns(wire->config.ctx);
}

/* Pass a frame on.  One for the cable needs room there. */
static void forward_frame(struct fault_wire *wire,
                          enum fault_direction direction, uint8_t priority,
                          const uint8_t *data, uint32_t len)
{
    if (direction == FAULT_IN) {
        wire->config.receive(wire->config.ctx,
                             &(struct frame_rx){.data = data, .len_bytes = len},
                             1);
        return;
    }
    wire->config.send(wire->config.ctx,
                      &(struct frame_tx){
                          .priority = priority,
                          .num_pieces = 1,
                          .pieces = {{.data = data, .len_bytes = len}},
                      });
}

static bool can_forward(const struct fault_wire *wire,
                        enum fault_direction direction)
{
    return direction == FAULT_IN || wire->config.has_room(wire->config.ctx);
}

/* A frame that is due and has no room needs no timer: the owner calls
 * fault_wire_timer() when there is room. */
static void set_wire_timer(const struct fault_wire *wire)
{
    uint64_t now_ns = wire_now_ns(wire);
    uint64_t deadline_ns = UINT64_MAX;

    for (unsigned int i = 0; wire->num_held > 0 && i < FAULT_WIRE_HELD; i++) {
        const struct fault_wire_frame *frame = &wire->held[i];

        if (frame->len != 0 &&
            (frame->due_ns > now_ns ||
             can_forward(wire, (enum fault_direction)frame->direction))) {
            deadline_ns = MIN(deadline_ns, frame->due_ns);
        }
    }
    wire->config.set_timer(wire->config.ctx, deadline_ns);
}

/* Keep a copy. @return false when there is no room for it */
static bool hold_frame(struct fault_wire *wire, enum fault_direction direction,
                       uint8_t priority, const uint8_t *data, uint32_t len,
                       uint64_t delay_ns, uint32_t later)
{
    struct fault_wire_frame *frame = wire->held;
    struct fault_wire_frame *end = wire->held + FAULT_WIRE_HELD;
    uint64_t now_ns = wire_now_ns(wire);

    while (frame < end && frame->len != 0) {
        frame++;
    }
    if (frame == end) {
        wire->overflows++;
        return false;
    }
    frame->due_ns = now_ns + MIN(delay_ns, UINT64_MAX - now_ns);
    frame->later = later;
    frame->direction = (uint8_t)direction;
    frame->priority = priority;
    frame->len = len;
    memcpy(frame->data, data, len);
    wire->num_held++;
    return true;
}

static void invert_bit(uint8_t *data, uint32_t len,
                       const struct fault_verdict *verdict)
{
    uint64_t bits = (uint64_t)len * 8;
    uint64_t bit =
        verdict->argument != 0 ? verdict->argument - 1 : verdict->random % bits;

    if (bit < bits) {
        data[bit / 8] ^= (uint8_t)(0x80u >> bit % 8);
    }
}

/* The receiver drops the segment, unless its checksum was wrong by this bit. */
static void break_checksum(uint8_t *tcp)
{
    tcp[TCP_CHECKSUM + 1] ^= 1;
}

/* The checksum changes with the window (RFC 1624), so that the segment is as
 * right or wrong as before. */
static void close_window(uint8_t *tcp)
{
    uint32_t sum = (uint16_t)~get_be16(tcp + TCP_CHECKSUM) +
                   (uint32_t)(uint16_t)~get_be16(tcp + TCP_WINDOW);

    sum = (sum & 0xffff) + (sum >> 16);
    put_be16(tcp + TCP_CHECKSUM, (uint16_t)~sum);
    put_be16(tcp + TCP_WINDOW, 0);
}

/* @return true when the frame still has to be forwarded */
static bool carry_out(struct fault_wire *wire, enum fault_direction direction,
                      uint8_t priority, const struct fault_verdict *verdict,
                      uint8_t *data, uint32_t len)
{
    switch (verdict->action) {
    case FAULT_DROP:
        return false;
    case FAULT_CORRUPT:
        invert_bit(data, len, verdict);
        return true;
    case FAULT_CHECKSUM:
        break_checksum(data + verdict->tcp_at);
        return true;
    case FAULT_ZERO_WINDOW:
        close_window(data + verdict->tcp_at);
        return true;
    case FAULT_DUPLICATE:
        (void)hold_frame(wire, direction, priority, data, len, 0, 0);
        return true;
    case FAULT_DELAY:
        return !hold_frame(wire, direction, priority, data, len,
                           verdict->argument, 0);
    case FAULT_REORDER:
        return !hold_frame(
            wire, direction, priority, data, len, FAULT_REORDER_MAX_NS,
            (uint32_t)MIN(MAX(verdict->argument, 1u), (uint64_t)UINT32_MAX));
    case FAULT_POWER_CUT:
        wire->config.power_cut(wire->config.ctx, verdict->id);
        return false;
    default:
        return true;
    }
}

/* A frame passed: frames that wait for later ones have one less to wait for. */
static void count_passed(struct fault_wire *wire,
                         enum fault_direction direction)
{
    for (unsigned int i = 0; wire->num_held > 0 && i < FAULT_WIRE_HELD; i++) {
        struct fault_wire_frame *frame = &wire->held[i];

        if (frame->len != 0 && frame->direction == direction &&
            frame->later > 0 && --frame->later == 0) {
            frame->due_ns = 0;
        }
    }
}

static struct fault_wire_frame *first_due(struct fault_wire *wire,
                                          unsigned int directions,
                                          uint64_t now_ns)
{
    struct fault_wire_frame *first = NULL;

    for (unsigned int i = 0; i < FAULT_WIRE_HELD; i++) {
        struct fault_wire_frame *frame = &wire->held[i];

        if (frame->len != 0 && (frame->direction & directions) &&
            frame->due_ns <= now_ns &&
            can_forward(wire, (enum fault_direction)frame->direction) &&
            (first == NULL || frame->due_ns < first->due_ns)) {
            first = frame;
        }
    }
    return first;
}

/* Forward the frames of these directions that are due.  A frame without room
 * waits for fault_wire_timer(). */
static void release_due(struct fault_wire *wire, unsigned int directions)
{
    struct fault_wire_frame *frame = NULL;

    while (wire->num_held > 0 &&
           (frame = first_due(wire, directions, wire_now_ns(wire))) != NULL) {
        /* The port may answer at once, and so enter this function again. */
        frame->due_ns = UINT64_MAX;
        forward_frame(wire, (enum fault_direction)frame->direction,
                      frame->priority, frame->data, frame->len);
        frame->len = 0;
        wire->num_held--;
    }
}

static void pass_frame(struct fault_wire *wire, enum fault_direction direction,
                       uint8_t priority, uint8_t *data, uint32_t len)
{
    struct fault_verdict verdict = fault_judge_frame(
        wire->config.table, wire->config.port, direction, data, len);

    if (carry_out(wire, direction, priority, &verdict, data, len)) {
        forward_frame(wire, direction, priority, data, len);
        count_passed(wire, direction);
    }
}

void fault_wire_rx(struct fault_wire *wire, const struct frame_rx *frames,
                   unsigned int n)
{
    for (unsigned int i = 0; i < n; i++) {
        if (frames[i].len_bytes <= FRAME_LEN_MAX && frames[i].len_bytes > 0) {
            memcpy(wire->rx_frame, frames[i].data, frames[i].len_bytes);
            pass_frame(wire, FAULT_IN, 0, wire->rx_frame, frames[i].len_bytes);
        } else {
            wire->config.receive(wire->config.ctx, &frames[i], 1);
        }
    }
    release_due(wire, FAULT_IN | FAULT_OUT);
    set_wire_timer(wire);
}

/* The port sends, perhaps from inside of receive(): frames for it have to wait
 * until it has returned. */
unsigned int fault_wire_tx(struct fault_wire *wire,
                           const struct frame_tx *burst, unsigned int count)
{
    unsigned int taken = 0;

    release_due(wire, FAULT_OUT);
    while (taken < count && wire->config.has_room(wire->config.ctx)) {
        const struct frame_tx *frame = &burst[taken++];
        uint32_t len = frame_tx_copy(wire->tx_frame, frame);

        pass_frame(wire, FAULT_OUT, frame->priority, wire->tx_frame, len);
    }
    release_due(wire, FAULT_OUT);
    set_wire_timer(wire);
    return taken;
}

void fault_wire_timer(struct fault_wire *wire)
{
    release_due(wire, FAULT_IN | FAULT_OUT);
    set_wire_timer(wire);
}

void fault_wire_clear(struct fault_wire *wire)
{
    for (unsigned int i = 0; wire->num_held > 0 && i < FAULT_WIRE_HELD; i++) {
        wire->held[i].len = 0;
    }
    wire->num_held = 0;
    set_wire_timer(wire);
}
