/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the latency monitor keeps over power cycles, as bytes in flash.
 * Reference: docs/hardware/flash.md, "Latency monitor"
 */
#include <string.h>

#include "lib/bytes.h"
#include "nvmeof/target/base/latency.h"

enum { /* byte offsets */
       RECORD_VERSION = 0,
       RECORD_FIRMWARE = 8,
       RECORD_SAVED = 16,
       RECORD_CURRENT = 32,
       RECORD_ELAPSED = 48,
       RECORD_ACTIVE = 56,
       RECORD_FIXED = 244,
};

enum { /* byte offsets in settings */
       SETTINGS_TIMER = 0,
       SETTINGS_THRESHOLDS = 2,
       SETTINGS_MODES = 6,
       SETTINGS_MIN_WINDOW = 8,
       SETTINGS_ENABLE = 9,
       SETTINGS_LEN = 16,
};
_Static_assert(RECORD_SAVED + SETTINGS_LEN == RECORD_CURRENT &&
                   RECORD_CURRENT + SETTINGS_LEN == RECORD_ELAPSED,
               "settings have 16 bytes");
_Static_assert(RECORD_ELAPSED + 8 == RECORD_ACTIVE &&
                   RECORD_ACTIVE + LATENCY_WINDOW_LEN <= RECORD_FIXED &&
                   RECORD_FIXED + LATENCY_WINDOW_LEN <= LATENCY_RECORD_LEN,
               "the record holds two windows");

enum { VERSION = 1 };

static void settings_emit(uint8_t *buf, const struct latency_settings *settings)
{
    put_le16(buf + SETTINGS_TIMER, settings->timer);
    memcpy(buf + SETTINGS_THRESHOLDS, settings->threshold, LATENCY_BUCKETS);
    put_le16(buf + SETTINGS_MODES, settings->keeps_largest);
    buf[SETTINGS_MIN_WINDOW] = settings->min_window;
    buf[SETTINGS_ENABLE] = settings->is_on;
}

static struct latency_settings settings_parse(const uint8_t *buf)
{
    struct latency_settings settings = {
        .is_on = buf[SETTINGS_ENABLE] == 1,
        .timer = get_le16(buf + SETTINGS_TIMER),
        .keeps_largest = get_le16(buf + SETTINGS_MODES),
        .min_window = buf[SETTINGS_MIN_WINDOW],
    };

    memcpy(settings.threshold, buf + SETTINGS_THRESHOLDS, LATENCY_BUCKETS);
    return settings;
}

static void firmware_emit(uint8_t *buf, const char *firmware)
{
    memset(buf, 0, LATENCY_FIRMWARE_LEN);
    memcpy(buf, firmware, strlen(firmware));
}

void latency_record_emit(const struct latency_monitor *monitor, uint8_t *record,
                         const char *firmware)
{
    memset(record, 0, LATENCY_RECORD_LEN);
    record[RECORD_VERSION] = VERSION;
    firmware_emit(record + RECORD_FIRMWARE, firmware);
    settings_emit(record + RECORD_SAVED, &monitor->saved);
    settings_emit(record + RECORD_CURRENT, &monitor->settings);
    put_le64(record + RECORD_ELAPSED, monitor->elapsed_us);
    latency_window_emit(record + RECORD_ACTIVE, &monitor->active);
    latency_window_emit(record + RECORD_FIXED, &monitor->fixed);
}

bool latency_record_parse(struct latency_monitor *monitor,
                          const uint8_t *record, size_t len,
                          const char *firmware, uint64_t now_us)
{
    uint8_t running[LATENCY_FIRMWARE_LEN];
    struct latency_settings saved;

    if (len != LATENCY_RECORD_LEN || record[RECORD_VERSION] != VERSION) {
        return false;
    }
    saved = settings_parse(record + RECORD_SAVED);
    if (!latency_settings_are_valid(&saved)) {
        return false;
    }
    monitor->saved = saved;
    latency_set(monitor, &saved, now_us);
    firmware_emit(running, firmware);
    if (memcmp(record + RECORD_SAVED, record + RECORD_CURRENT, SETTINGS_LEN) ==
            0 &&
        memcmp(record + RECORD_FIRMWARE, running, sizeof(running)) == 0) {
        latency_window_parse(&monitor->active, record + RECORD_ACTIVE);
        latency_window_parse(&monitor->fixed, record + RECORD_FIXED);
        monitor->elapsed_us = get_le64(record + RECORD_ELAPSED);
        monitor->advanced_us = now_us;
    }
    return true;
}
