/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A timer wheel: starting, stopping and expiring a timer cost the same however
 * many timers there are.
 *
 * A timer with a deadline beyond the wheel's range of 33 s fires early.  Its
 * owner compares the time with the real deadline and starts it again.
 */
#ifndef ESSD_NVMEOF_TARGET_BASE_WHEEL_H
#define ESSD_NVMEOF_TARGET_BASE_WHEEL_H

#include <stdint.h>

#include "nvmeof/limits.h"

enum {
    WHEEL_TICK_SHIFT = 17, /* 131 ms */
    WHEEL_BUCKETS = 256,
    WHEEL_CTRL = 0, /* timers of controllers, then of queue pairs */
    WHEEL_QPAIR = NVMF_MAX_HOSTS,
    WHEEL_GENERATED = WHEEL_QPAIR + NVMF_MAX_QPAIRS, /* one for all keys */
    WHEEL_TIMERS = WHEEL_GENERATED + 1,
    WHEEL_NONE = 0xffff,
};

struct wheel {
    uint64_t tick; /* all timers up to this tick have fired */
    uint64_t occupied[WHEEL_BUCKETS / 64];
    uint16_t head[WHEEL_BUCKETS];
    uint16_t next[WHEEL_TIMERS];
    uint16_t prev[WHEEL_TIMERS];
    uint16_t bucket[WHEEL_TIMERS]; /* WHEEL_NONE if the timer is not running */
};

void wheel_init(struct wheel *wheel, uint64_t now_us);

/** Start a timer, or restart it.  It fires at the first tick at or after
 * deadline_us. */
void wheel_start(struct wheel *wheel, uint16_t timer, uint64_t deadline_us);

void wheel_stop(struct wheel *wheel, uint16_t timer);

/**
 * Take one timer that has fired by now_us, and stop it.
 *
 * @return the timer; WHEEL_NONE when there are no more.
 */
uint16_t wheel_expire(struct wheel *wheel, uint64_t now_us);

/** When the next timer fires; UINT64_MAX if none runs. */
uint64_t wheel_next_us(const struct wheel *wheel);

#endif
