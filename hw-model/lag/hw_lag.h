/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Core of the link aggregation block, which stands between the ports and the
 * RNIC.
 * Reference: docs/hardware/lag.md; registers in hw-model/regs/lag.h.
 *
 * It runs in the execution context of the ports and the RNIC, and stores no
 * frames.
 *
 * Not implemented: see "not modelled" in the guide.
 */
#ifndef ESSD_HW_LAG_H
#define ESSD_HW_LAG_H

#include "hw-model/core/env.h"
#include "hw-model/core/frame.h"
#include "lib/util.h"

/* Sizes from regs/lag.h, repeated here; hw_lag.c asserts that they agree. */
enum { HW_LAG_PORTS = 2, HW_LAG_COUNTERS = 6 };

/* Calls to the RNIC and to the clock.  None may be NULL. */
struct hw_lag_ops {
    void *ctx;
    uint64_t (*now_ns)(void *ctx); /* virtual time */
    void (*rnic_rx)(void *ctx, unsigned int port, const struct frame_rx *frames,
                    unsigned int n);
    void (*toe_rx)(void *ctx, unsigned int port, const struct frame_rx *frames,
                   unsigned int n);
    /*
     * The sink of that RNIC port, which the TOE has too, has room again, or its
     * paused priorities changed.  May be called from inside frame_sink.send().
     */
    void (*rnic_ready)(void *ctx, unsigned int port);
    void (*link_changed)(void *ctx, unsigned int port, bool is_up);
};

struct hw_lag;

/* Takes the frames that the RNIC sends on one of its ports. */
struct hw_lag_sink {
    struct hw_lag *lag;
    unsigned int port;
};

struct hw_lag {
    /* Wiring, which is not part of the saved state. */
    struct hw_lag_ops ops;
    struct frame_sink ports[HW_LAG_PORTS];  /* sinks of the member ports */
    struct hw_lag_sink sinks[HW_LAG_PORTS]; /* sinks for the RNIC's ports */

    uint32_t ctrl;
    uint32_t members;
    uint32_t active;
    uint32_t quiet_ms;
    uint32_t counter_high;
    uint64_t counters[HW_LAG_COUNTERS];
    /* Time of the last frame for one of the drive's addresses. */
    uint64_t heard_ns[HW_LAG_PORTS];
    uint8_t links; /* bitmap of the links that are up; a reset keeps it */
    /* Bitmap of paused priorities, for each RNIC port. */
    uint8_t paused[HW_LAG_PORTS];
};

/** Power-on: off, both links down, nothing attached.  `lag` must not move. */
void hw_lag_init(struct hw_lag *lag, const struct hw_lag_ops *ops);

/** Set the sink of member `port`; it is copied. */
void hw_lag_attach(struct hw_lag *lag, unsigned int port,
                   const struct frame_sink *sink);

/** The sink for the RNIC's port `port`. */
struct frame_sink hw_lag_sink(struct hw_lag *lag, unsigned int port);

/** Machine reset or LAG_CTRL.RESET: as power-on, but the links are kept. */
void hw_lag_reset(struct hw_lag *lag);

/**
 * Access a register; `offset` is a multiple of 4.
 * @return false when there is no such register
 */
MUST_USE bool hw_lag_read(struct hw_lag *lag, uint32_t offset, uint32_t *value);
MUST_USE bool hw_lag_write(struct hw_lag *lag, uint32_t offset, uint32_t value);

/** The events of a port: see struct hw_port_ops. */
void hw_lag_rx(struct hw_lag *lag, unsigned int port,
               const struct frame_rx *frames, unsigned int n);
void hw_lag_rx_toe(struct hw_lag *lag, unsigned int port,
                   const struct frame_rx *frames, unsigned int n);
void hw_lag_ready(struct hw_lag *lag, unsigned int port);
void hw_lag_link(struct hw_lag *lag, unsigned int port, bool is_up);

/**
 * Check the fields after they were loaded.
 *
 * @return false when they are invalid; the block is then unusable
 */
MUST_USE bool hw_lag_loaded(struct hw_lag *lag);

#endif
