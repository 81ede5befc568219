/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The latency monitor against a model that remembers every event and computes
 * both windows anew: random settings, events, pauses and power cycles.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "nvmeof/target/base/latency.h"
#include "tests/test_fixture.h"

#define MINUTE_US UINT64_C(60000000)

enum { EVENTS = 400, SEEDS = 300, STEPS = 200 };

struct event {
    uint64_t at_us; /* in time of power-on since Set Features */
    struct latency_event event;
    bool is_first_of_power; /* no minimum window runs before it */
};

static struct {
    struct latency_settings settings;
    uint64_t age_us; /* time of power-on since Set Features */
    unsigned int count;
    struct event events[EVENTS];
    bool was_cut; /* since the last event */
} model;

static uint64_t random_state;

static uint32_t next_random(uint32_t below)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (uint32_t)(random_state >> 20) % below;
}

static unsigned int model_bucket(uint64_t latency_us)
{
    unsigned int bucket = LATENCY_BUCKETS - 1;

    while (latency_us < (model.settings.threshold[bucket] + 1) * 5000ull) {
        bucket--;
    }
    return bucket;
}

/* The window that began at `from_us`, with everything that happened in it. */
static void model_window(uint64_t from_us, uint64_t to_us,
                         struct latency_window *window)
{
    uint64_t locked_us[LATENCY_BUCKETS][LATENCY_KINDS] = {{0}};

    memset(window, 0, sizeof(*window));
    memset(window->stamp_ms, 0xff, sizeof(window->stamp_ms));
    for (unsigned int i = 0; i < model.count; i++) {
        const struct event *event = &model.events[i];
        unsigned int kind = event->event.kind;
        unsigned int bucket = model_bucket(event->event.latency_us);
        uint64_t ms = MIN(event->event.latency_us / 1000, 65535ull);
        bool keeps_largest =
            model.settings.keeps_largest >> (3 * bucket + kind) & 1;

        if (event->is_first_of_power) {
            memset(locked_us, 0, sizeof(locked_us));
        }
        if (event->at_us < from_us || event->at_us >= to_us) {
            continue;
        }
        window->count[bucket][kind]++;
        if (window->count[bucket][kind] > 1 &&
            (!keeps_largest || ms <= window->measured_ms[bucket][kind] ||
             event->at_us < locked_us[bucket][kind])) {
            continue;
        }
        window->measured_ms[bucket][kind] = (uint16_t)ms;
        window->stamp_ms[bucket][kind] = event->event.stamp_ms;
        window->is_epoch =
            (uint16_t)(window->is_epoch & ~(1u << (3 * bucket + kind)));
        window->is_epoch |=
            (uint16_t)(event->event.is_epoch << (3 * bucket + kind));
        locked_us[bucket][kind] =
            event->at_us + model.settings.min_window * 100000ull;
    }
}

static void expect_window(const struct latency_window *got,
                          const struct latency_window *expected)
{
    assert_memory_equal(got->count, expected->count, sizeof(got->count));
    assert_memory_equal(got->stamp_ms, expected->stamp_ms,
                        sizeof(got->stamp_ms));
    assert_memory_equal(got->measured_ms, expected->measured_ms,
                        sizeof(got->measured_ms));
    assert_int_equal(got->is_epoch, expected->is_epoch);
}

static void expect_model(struct latency_monitor *monitor, uint64_t now_us)
{
    uint64_t window_us = model.settings.timer * 5 * MINUTE_US;
    uint64_t from_us = model.age_us / window_us * window_us;
    struct latency_window expected;
    struct latency_log log;

    latency_advance(monitor, now_us);
    latency_read(monitor, &log);
    model_window(from_us, UINT64_MAX, &expected);
    expect_window(&log.active, &expected);
    model_window(from_us < window_us ? 1 : from_us - window_us,
                 from_us < window_us ? 0 : from_us, &expected);
    expect_window(&log.fixed, &expected);
    assert_int_equal(log.timer, (model.age_us - from_us) / (5 * MINUTE_US));
}

static void set_random(struct latency_monitor *monitor, uint64_t now_us)
{
    struct latency_settings settings = {
        .is_on = true,
        .timer = (uint16_t)(1 + next_random(3)),
        .keeps_largest = (uint16_t)next_random(LATENCY_MODES + 1),
        .min_window = (uint8_t)next_random(256),
    };
    unsigned int threshold = next_random(10);

    for (unsigned int i = 0; i < LATENCY_BUCKETS; i++) {
        settings.threshold[i] = (uint8_t)threshold;
        threshold += 1 + next_random(60);
    }
    assert_true(latency_settings_are_valid(&settings));
    latency_set(monitor, &settings, now_us);
    monitor->saved = settings;
    model.settings = settings;
    model.age_us = 0;
    model.count = 0;
    model.was_cut = false;
}

static void count_random(struct latency_monitor *monitor, uint64_t now_us)
{
    struct event *event = &model.events[model.count];
    uint64_t least_us = latency_least_us(monitor);

    if (model.count == EVENTS) {
        return;
    }
    model.count++;
    *event = (struct event){
        .at_us = model.age_us,
        .event = {.kind = (enum latency_kind)next_random(LATENCY_KINDS),
                  .latency_us = least_us + next_random(1500000),
                  .stamp_ms = 1 + next_random(1000000),
                  .is_epoch = next_random(2)},
        .is_first_of_power = model.was_cut,
    };
    if (next_random(20) == 0) {
        event->event.latency_us = least_us + 5000 * next_random(300);
    }
    if (next_random(50) == 0) {
        event->event.latency_us = 1ull << (20 + next_random(40));
    }
    model.was_cut = false;
    latency_count(monitor, &event->event, now_us);
}

static uint64_t random_pause(void)
{
    switch (next_random(4)) {
    case 0:
        return next_random(1000000);
    case 1:
        return next_random(30) * 1000000ull;
    case 2:
        return next_random(4) * 5 * MINUTE_US;
    default:
        return next_random(100) == 0 ? next_random(60) * MINUTE_US : 0;
    }
}

/* The drive is off and on again; its own clock begins anew. */
static void cut_power(struct latency_monitor *monitor, uint64_t *now_us)
{
    uint8_t record[LATENCY_RECORD_LEN];

    latency_record_emit(monitor, record, "0.1.0");
    *now_us = next_random(1000);
    latency_init(monitor, *now_us);
    assert_true(latency_record_parse(monitor, record, sizeof(record), "0.1.0",
                                     *now_us));
    model.was_cut = true;
}

static void test_the_monitor_agrees_with_its_model(void **state)
{
    struct latency_monitor monitor;

    (void)state;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        uint64_t now_us = 0;

        random_state = seed * UINT64_C(0x9e3779b97f4a7c15);
        latency_init(&monitor, now_us);
        set_random(&monitor, now_us);
        for (unsigned int i = 0; i < STEPS; i++) {
            uint64_t pause_us = random_pause();

            now_us += pause_us;
            model.age_us += pause_us;
            if (next_random(100) == 0) {
                set_random(&monitor, now_us);
            }
            count_random(&monitor, now_us);
            if (next_random(3) == 0) {
                expect_model(&monitor, now_us);
            }
            if (next_random(30) == 0) {
                expect_model(&monitor, now_us);
                cut_power(&monitor, &now_us);
                expect_model(&monitor, now_us);
            }
        }
        expect_model(&monitor, now_us);
    }
}

TEST_FIXTURE(NULL, NULL)
