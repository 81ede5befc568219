/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the latency monitor keeps over power cycles, as bytes in flash.
 * Reference: docs/hardware/flash.md, "Latency monitor"
 */
#include <string.h>

#include "lib/bytes.h"
#include "nvmeof/target/base/latency.h"

enum {                      /* byte offsets */
       RECORD_VERSION = 0,  /* 1 byte; another version is not read */
       RECORD_FIRMWARE = 8, /* 8 bytes: revision that has written the record */
       RECORD_SAVED = 16,   /* settings that are saved */
       RECORD_CURRENT = 32, /* settings in force */
       RECORD_ELAPSED = 48, /* 8 bytes: age of the active window in us */
       RECORD_ACTIVE = 56,  /* as log page C3h from byte 32 on */
       RECORD_FIXED = 244,  /* static window: as the page from byte 240 on */
};

enum {                          /* byte offsets in settings */
       SETTINGS_TIMER = 0,      /* 2 bytes: bucket timer threshold */
       SETTINGS_THRESHOLDS = 2, /* 4 bytes: A to D */
       SETTINGS_MODES = 6,      /* 2 bytes: latency configuration */
       SETTINGS_MIN_WINDOW = 8, /* 1 byte */
       SETTINGS_ENABLE = 9,     /* 1 byte: 1 if the monitor is on */
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
