/* SPDX-License-Identifier: BSD-2-Clause */
#include "nvmeof/target/base/wheel.h"

#include <string.h>

#include "lib/util.h"

_Static_assert(IS_POW2(WHEEL_BUCKETS), "indices are masked");

void wheel_init(struct wheel *wheel, uint64_t now_us)
{
    memset(wheel, 0, sizeof(*wheel));
    memset(wheel->head, 0xff, sizeof(wheel->head));
    memset(wheel->bucket, 0xff, sizeof(wheel->bucket));
    wheel->tick = now_us >> WHEEL_TICK_SHIFT;
}

void wheel_stop(struct wheel *wheel, uint16_t timer)
{
    uint16_t bucket = wheel->bucket[timer];
    uint16_t next = wheel->next[timer];
    uint16_t prev = wheel->prev[timer];

    if (bucket == WHEEL_NONE) {
        return;
    }
    if (next != WHEEL_NONE) {
        wheel->prev[next] = prev;
    }
    if (prev != WHEEL_NONE) {
        wheel->next[prev] = next;
    } else {
        wheel->head[bucket] = next;
        if (next == WHEEL_NONE) {
            wheel->occupied[bucket / 64] &= ~(1ull << bucket % 64);
        }
    }
    wheel->bucket[timer] = WHEEL_NONE;
}

void wheel_start(struct wheel *wheel, uint16_t timer, uint64_t deadline_us)
{
    uint64_t tick = (deadline_us >> WHEEL_TICK_SHIFT) + 1;
    uint16_t bucket;

    ASSERT(timer < WHEEL_TIMERS);
    wheel_stop(wheel, timer);
    tick = MAX(tick, wheel->tick + 1);
    tick = MIN(tick, wheel->tick + WHEEL_BUCKETS - 1);
    bucket = tick % WHEEL_BUCKETS;

    wheel->bucket[timer] = bucket;
    wheel->prev[timer] = WHEEL_NONE;
    wheel->next[timer] = wheel->head[bucket];
    if (wheel->head[bucket] != WHEEL_NONE) {
        wheel->prev[wheel->head[bucket]] = timer;
    }
    wheel->head[bucket] = timer;
    wheel->occupied[bucket / 64] |= 1ull << bucket % 64;
}

/* The first tick after wheel->tick whose bucket has timers, or 0. */
static uint64_t next_tick(const struct wheel *wheel)
{
    for (uint64_t tick = wheel->tick + 1; tick < wheel->tick + WHEEL_BUCKETS;) {
        unsigned int bucket = tick % WHEEL_BUCKETS;
        uint64_t rest = wheel->occupied[bucket / 64] >> bucket % 64;

        if (rest != 0) {
            tick += (unsigned int)__builtin_ctzll(rest);
            return tick < wheel->tick + WHEEL_BUCKETS ? tick : 0;
        }
        tick += 64 - bucket % 64;
    }
    return 0;
}

uint16_t wheel_expire(struct wheel *wheel, uint64_t now_us)
{
    uint64_t now_tick = now_us >> WHEEL_TICK_SHIFT;
    uint64_t tick = next_tick(wheel);
    uint16_t timer;

    if (tick == 0 || tick > now_tick) {
        wheel->tick = MAX(wheel->tick, now_tick);
        return WHEEL_NONE;
    }
    /* This bucket still has timers: stay at the tick before it. */
    wheel->tick = tick - 1;
    timer = wheel->head[tick % WHEEL_BUCKETS];
    wheel_stop(wheel, timer);
    return timer;
}

uint64_t wheel_next_us(const struct wheel *wheel)
{
    uint64_t tick = next_tick(wheel);

    return tick == 0 ? UINT64_MAX : tick << WHEEL_TICK_SHIFT;
}
