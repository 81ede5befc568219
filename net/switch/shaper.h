/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One direction of a cable: how long a frame takes, and whether it is lost.
 *
 * A frame occupies the cable for its serialisation time, which counts the
 * preamble, the FCS and the inter-frame gap (IEEE 802.3 clause 4.4.2), then
 * travels for the delay plus a random part of the jitter.  Frames never
 * overtake each other.  Loss and jitter come from a pseudo-random sequence,
 * which is the same for the same seed.
 */
#ifndef ESSD_NET_SWITCH_SHAPER_H
#define ESSD_NET_SWITCH_SHAPER_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/util.h"

enum {
    SHAPER_OVERHEAD = 24,         /* preamble 8, FCS 4, inter-frame gap 12 */
    SHAPER_CERTAIN = 1000000000u, /* loss_ppb of a cable that loses all */
};

struct shaper_config {
    uint64_t speed_bps; /* bits per second, up to 10^12; 0: takes no time */
    uint64_t delay_ns;  /* up to 10^12 */
    uint64_t jitter_ns; /* up to 10^12: 0 to this are added to the delay */
    uint32_t loss_ppb;  /* probability in 10^-9, up to SHAPER_CERTAIN */
};

struct shaper {
    struct shaper_config config;
    uint64_t free_ns; /* when the previous frame has left the sender */
    uint64_t last_ns; /* when the previous frame arrives */
    uint64_t random;  /* state of the pseudo-random sequence */
};

/** Start the pseudo-random sequence of a seed. */
void shaper_seed(struct shaper *shaper, uint64_t seed);

/** Forget the frames on the cable: the next one need not wait for them. */
void shaper_clear(struct shaper *shaper);

/** Whether frames take time on this cable. */
static inline bool shaper_takes_time(const struct shaper *shaper)
{
    return (shaper->config.speed_bps | shaper->config.delay_ns |
            shaper->config.jitter_ns) != 0;
}

/**
 * Send a frame of `len` bytes, which do not include the FCS.
 *
 * @return when it arrives, by the clock of now_ns; 0: at once
 */
MUST_USE uint64_t shaper_arrival_ns(struct shaper *shaper, uint32_t len,
                                    uint64_t now_ns);

/** Decide for one frame whether it is lost. */
MUST_USE bool shaper_loses_frame(struct shaper *shaper);

#endif
