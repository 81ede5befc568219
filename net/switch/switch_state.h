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
    bool broken; /* The device has sent an impossible length.  Nothing more is
                  * received until it has connected again. */

    /* These fields are about the oldest received frame.  The last three are
     * valid if `decided` is set. */
    bool decided;
    bool paused;      /* The frame waits for an output. */
    uint64_t outputs; /* ports that have not got the frame yet: bit n, port n */
    uint16_t vid;
    struct eth eth;

    uint64_t waiting; /* inputs that wait for room in the output queue */
    uint64_t full_since_ns;
    bool stalled; /* frames that do not fit are dropped until the device takes
                   * bytes again */
};

struct switch_core {
    struct switch_config config;
    struct switch_settings settings;
    uint64_t active;   /* ports that are connected and whose link is up */
    uint64_t runnable; /* ports whose oldest frame may be passed on */
    uint64_t timed;    /* ports whose oldest frame is still on the cable */
    uint64_t tx;       /* ports whose output queue is not empty */
    uint64_t full;     /* ports for whose output queue some input waits */
    uint8_t turn;      /* port whose input has the first turn in next round */
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

/** Find the whole frames in the bytes that a port has received. */
void switch_parse(struct switch_core *core, uint8_t port, uint64_t now_ns);

/** Take a port out of the outputs of all frames; wake inputs that wait for it.
 */
void switch_cancel_output(struct switch_core *core, uint8_t output);

/** Make the inputs that wait for a port's queue runnable again. */
void switch_wake_inputs(struct switch_core *core, uint8_t output);

/** Remove the oldest received frame of a port. */
void switch_pop_input(struct switch_core *core, uint8_t input);

#endif
