/* SPDX-License-Identifier: BSD-2-Clause */
#include "nvmeof/target/base/latency.h"

#include <string.h>

#define TIMER_US ((uint64_t)LATENCY_TIMER_MINUTES * 60 * 1000 * 1000)

/* The thresholds are 30, 100, 155 and 235 ms, and a window lasts a week. */
const struct latency_settings latency_defaults = {
    .timer = 0x7e0,
    .threshold = {0x05, 0x13, 0x1e, 0x2e},
    .keeps_largest = LATENCY_MODES,
    .min_window = 0x0a,
};

static void empty_window(struct latency_window *window)
{
    memset(window, 0, sizeof(*window));
    for (unsigned int bucket = 0; bucket < LATENCY_BUCKETS; bucket++) {
        for (unsigned int kind = 0; kind < LATENCY_KINDS; kind++) {
            window->stamp_ms[bucket][kind] = LATENCY_NO_STAMP;
        }
    }
}

static void empty_windows(struct latency_monitor *monitor, uint64_t now_us)
{
    empty_window(&monitor->active);
    empty_window(&monitor->fixed);
    monitor->elapsed_us = 0;
    monitor->advanced_us = now_us;
}

void latency_init(struct latency_monitor *monitor, uint64_t now_us)
{
    memset(monitor, 0, sizeof(*monitor));
    monitor->settings = latency_defaults;
    monitor->saved = latency_defaults;
    empty_windows(monitor, now_us);
}

bool latency_settings_are_valid(const struct latency_settings *settings)
{
    bool is_ascending = true;

    for (unsigned int i = 1; i < LATENCY_BUCKETS; i++) {
        is_ascending &= settings->threshold[i - 1] < settings->threshold[i];
    }
    /* A monitor that is off uses neither thresholds nor timer. */
    return (settings->keeps_largest & ~LATENCY_MODES) == 0 &&
           (!settings->is_on || (is_ascending && settings->timer != 0));
}

void latency_set(struct latency_monitor *monitor,
                 const struct latency_settings *settings, uint64_t now_us)
{
    latency_advance(monitor, now_us);
    monitor->settings = *settings;
    if (settings->is_on) {
        empty_windows(monitor, now_us);
    }
}

/* ---- Counting. */

static uint64_t threshold_us(const struct latency_settings *settings,
                             unsigned int bucket)
{
    return (settings->threshold[bucket] + 1ull) * LATENCY_THRESHOLD_MS * 1000;
}

uint64_t latency_least_us(const struct latency_monitor *monitor)
{
    return threshold_us(&monitor->settings, 0);
}

void latency_advance(struct latency_monitor *monitor, uint64_t now_us)
{
    uint64_t window_us = monitor->settings.timer * TIMER_US;

    if (!monitor->settings.is_on) {
        return;
    }
    /* The time of a turn of the main loop can be before that of an event in
     * it. */
    if (now_us > monitor->advanced_us) {
        monitor->elapsed_us += now_us - monitor->advanced_us;
        monitor->advanced_us = now_us;
    }
    if (monitor->elapsed_us < window_us) {
        return;
    }
    monitor->fixed = monitor->active;
    empty_window(&monitor->active);
    if (monitor->elapsed_us >= 2 * window_us) {
        /* Nothing was counted in the windows that have passed since. */
        monitor->fixed = monitor->active;
    }
    monitor->elapsed_us %= window_us;
}

static unsigned int bucket_of(const struct latency_settings *settings,
                              uint64_t latency_us)
{
    unsigned int bucket = 0;

    while (bucket + 1 < LATENCY_BUCKETS &&
           latency_us >= threshold_us(settings, bucket + 1)) {
        bucket++;
    }
    return bucket;
}

/* Whether the stamp and the latency of a counter are to be replaced. */
static bool is_update(const struct latency_monitor *monitor,
                      unsigned int bucket, unsigned int kind, uint16_t ms,
                      uint64_t now_us)
{
    const struct latency_window *active = &monitor->active;

    if (active->stamp_ms[bucket][kind] == LATENCY_NO_STAMP) {
        return true;
    }
    return (monitor->settings.keeps_largest & latency_bit(bucket, kind)) != 0 &&
           ms > active->measured_ms[bucket][kind] &&
           now_us >= monitor->update_us[bucket][kind];
}

void latency_count(struct latency_monitor *monitor,
                   const struct latency_event *event, uint64_t now_us)
{
    struct latency_window *active = &monitor->active;
    unsigned int bucket = bucket_of(&monitor->settings, event->latency_us);
    unsigned int kind = event->kind;
    uint16_t ms = (uint16_t)MIN(event->latency_us / 1000, (uint64_t)UINT16_MAX);

    latency_advance(monitor, now_us);
    if (active->count[bucket][kind] != UINT32_MAX) {
        active->count[bucket][kind]++;
    }
    if (!is_update(monitor, bucket, kind, ms, now_us)) {
        return;
    }
    active->stamp_ms[bucket][kind] = event->stamp_ms;
    active->measured_ms[bucket][kind] = ms;
    active->is_epoch &= (uint16_t)~latency_bit(bucket, kind);
    if (event->is_epoch) {
        active->is_epoch |= latency_bit(bucket, kind);
    }
    monitor->update_us[bucket][kind] =
        now_us + monitor->settings.min_window * LATENCY_WINDOW_MS * 1000ull;
}

void latency_read(const struct latency_monitor *monitor,
                  struct latency_log *log)
{
    *log = (struct latency_log){
        .settings = monitor->settings,
        .timer = (uint16_t)(monitor->elapsed_us / TIMER_US),
        .active = monitor->active,
        .fixed = monitor->fixed,
    };
}
