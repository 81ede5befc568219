/* SPDX-License-Identifier: BSD-2-Clause */
/* Speed, delay, jitter and loss of one direction of a cable: see shaper.h. */
#include "net/switch/shaper.h"

#include "lib/random.h"

enum { BITS_PER_BYTE = 8 };
static const uint64_t second_ns = 1000000000;

/* A number below `end`; the bias is below 2^-24 for every end that is used. */
static uint64_t shaper_random_below(struct shaper *shaper, uint64_t end)
{
    return random_next(&shaper->random) % end;
}

void shaper_seed(struct shaper *shaper, uint64_t seed)
{
    shaper->random = seed;
}

void shaper_clear(struct shaper *shaper)
{
    shaper->free_ns = 0;
    shaper->last_ns = 0;
}

uint64_t shaper_arrival_ns(struct shaper *shaper, uint32_t len, uint64_t now_ns)
{
    const struct shaper_config *config = &shaper->config;
    uint64_t arrival_ns;

    if (!shaper_takes_time(shaper) && shaper->last_ns <= now_ns) {
        return 0;
    }
    shaper->free_ns = MAX(shaper->free_ns, now_ns);
    if (config->speed_bps != 0) {
        shaper->free_ns += (uint64_t)(len + SHAPER_OVERHEAD) * BITS_PER_BYTE *
                           second_ns / config->speed_bps;
    }
    arrival_ns = shaper->free_ns + config->delay_ns;
    if (config->jitter_ns != 0) {
        arrival_ns += shaper_random_below(shaper, config->jitter_ns + 1);
    }
    shaper->last_ns = MAX(shaper->last_ns, arrival_ns);
    return shaper->last_ns;
}

bool shaper_loses_frame(struct shaper *shaper)
{
    return shaper->config.loss_ppb != 0 &&
           shaper_random_below(shaper, SHAPER_CERTAIN) <
               shaper->config.loss_ppb;
}
