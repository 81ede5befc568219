/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Wire faults: stands between a port and its cable, in both directions.
 * Reference: docs/faults.md.
 *
 * While the table has no rule for the wire and no frame is held, the owner may
 * bypass the adapter (fault_wire_is_idle()).
 */
#ifndef ESSD_HW_FAULT_WIRE_H
#define ESSD_HW_FAULT_WIRE_H

#include "hw-model/core/frame.h"
#include "hw-model/fault/fault_rule.h"

enum {
    FAULT_WIRE_HELD = 64,             /* frames held at once */
    FAULT_REORDER_MAX_NS = 100000000, /* a reordered frame waits no longer */
};

struct fault_wire_config {
    struct fault_table *table;
    unsigned int port;
    void *ctx;

    /* Frames for the port. */
    void (*receive)(void *ctx, const struct frame_rx *frames, unsigned int n);

    /* Whether send() takes a frame now. */
    bool (*has_room)(void *ctx);

    /* One frame for the cable; called only while has_room() is true. */
    void (*send)(void *ctx, const struct frame_tx *frame);

    uint64_t (*now_ns)(void *ctx);

    /* Call fault_wire_timer() at this time; UINT64_MAX: never. */
    void (*set_timer)(void *ctx, uint64_t deadline_ns);

    /* Cut the power; `id` is the rule's.  It returns if capacitors supply the
     * drive. */
    void (*power_cut)(void *ctx, uint32_t id);
};

/* A frame that is held back. */
struct fault_wire_frame {
    uint64_t due_ns;
    uint32_t len;      /* 0: this entry is free */
    uint32_t later;    /* frames that go first; 0: only the time counts */
    uint8_t direction; /* enum fault_direction */
    uint8_t priority;
    uint8_t data[FRAME_LEN_MAX];
};

struct fault_wire {
    struct fault_wire_config config;
    uint32_t num_held;
    uint64_t overflows; /* frames that were not held for want of room */
    uint8_t rx_frame[FRAME_LEN_MAX]; /* copies, which faults may change */
    uint8_t tx_frame[FRAME_LEN_MAX];
    struct fault_wire_frame held[FAULT_WIRE_HELD];
};

/** `wire` is zeroed; `config` is copied. */
void fault_wire_init(struct fault_wire *wire,
                     const struct fault_wire_config *config);

/** True if frames need not pass the adapter. */
static inline bool fault_wire_is_idle(const struct fault_wire *wire)
{
    return wire->num_held == 0 &&
           !fault_table_has(wire->config.table, FAULT_WIRE);
}

/** Frames from the cable. */
void fault_wire_rx(struct fault_wire *wire, const struct frame_rx *frames,
                   unsigned int n);

/** Frames for the cable, as frame_sink.send. */
unsigned int fault_wire_tx(struct fault_wire *wire,
                           const struct frame_tx *burst, unsigned int count);

/** The deadline has passed, or the cable has room again: send what is due. */
void fault_wire_timer(struct fault_wire *wire);

/** Lose the frames that are held: the cable was pulled, or the machine was
 *  reset. */
void fault_wire_clear(struct fault_wire *wire);

#endif
