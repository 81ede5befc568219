/* SPDX-License-Identifier: BSD-2-Clause */
/* The state of a switch; for the files of this directory. */
#ifndef ESSD_NET_SWITCH_SWITCH_STATE_H
#define ESSD_NET_SWITCH_SWITCH_STATE_H

#include "net/switch/rx_lane.h"
#include "net/switch/switch.h"

struct switch_port {
    struct switch_port_config config;
    struct shaper shaper[SWITCH_DIRECTIONS];
    struct rx_lane rx;
    struct tx_lane tx;
    uint64_t counters[SWITCH_COUNTERS];
    bool connected;
    bool captures;
    bool broken; /* sent a length that no frame has; until it disconnects */

    /* The oldest received frame, once it was decided where it goes. */
    bool decided;
    bool paused;      /* it waits for an output */
    uint64_t outputs; /* ports that do not have it yet: bit n for port n */
    uint16_t vid;
    struct eth eth;

    uint64_t waiting; /* inputs that wait for room in the output queue */
    uint64_t full_since_ns;
    bool stalled; /* drops, until the device takes something */
};

struct switch_core {
    struct switch_config config;
    struct switch_settings settings;
    uint64_t active;   /* ports that frames pass through */
    uint64_t runnable; /* ports whose oldest frame may be passed on */
    uint64_t timed;    /* ports whose oldest frame is on the cable still */
    uint64_t tx;       /* ports whose output queue is not empty */
    uint64_t full;     /* ports whose output queue inputs wait for */
    uint8_t turn;      /* port that begins in the next run */
    struct switch_port ports[SWITCH_PORTS];
    struct fdb fdb;
};

static inline uint64_t port_bit(uint8_t port)
{
    return (uint64_t)1 << port;
}

/** Take the lowest port out of a set that is not empty. */
static inline uint8_t port_take_lowest(uint64_t *ports)
{
    uint8_t port = (uint8_t)__builtin_ctzll(*ports);

    *ports &= *ports - 1;
    return port;
}

/** The frames that came of a port become frames of its lane. */
void switch_parse(struct switch_core *core, uint8_t port, uint64_t now_ns);

/** Frames do not go to a port any more, and do not wait for it. */
void switch_cancel_output(struct switch_core *core, uint8_t output);

/** Inputs that wait for a port try again. */
void switch_wake_inputs(struct switch_core *core, uint8_t output);

/** The oldest received frame of a port is done with. */
void switch_pop_input(struct switch_core *core, uint8_t input);

#endif
