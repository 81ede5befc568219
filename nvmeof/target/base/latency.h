/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The latency monitor: it counts commands that took long, by kind of command
 * and by latency, and remembers when one of them ended and how long it took.
 *
 * The counts of a period, the active window, become the static window when the
 * bucket timer reaches its threshold, and an empty active window begins.  The
 * timer needs no clock tick: whoever looks at the windows or counts a command
 * first calls latency_advance().
 * Spec: OCP Datacenter NVMe SSD Specification 2.0 and 2.5, annex C
 *
 * Left out: debug logs.
 */
#ifndef ESSD_NVMEOF_TARGET_BASE_LATENCY_H
#define ESSD_NVMEOF_TARGET_BASE_LATENCY_H

#include "nvmeof/wire/ocp.h"

enum {
    LATENCY_FIRMWARE_LEN = 8,
    LATENCY_RECORD_LEN = 432, /* what outlives a power cycle */
};

struct latency_monitor {
    struct latency_settings settings; /* in force */
    struct latency_settings saved;    /* in force after the next power-on */
    struct latency_window active, fixed;
    uint64_t elapsed_us; /* of the active window, until advanced_us */
    uint64_t advanced_us;
    /* When a largest latency may be updated again; not kept over power cycles.
     */
    uint64_t update_us[LATENCY_BUCKETS][LATENCY_KINDS];
};

/* The end of a command that took long. */
struct latency_event {
    enum latency_kind kind;
    uint64_t latency_us;
    uint64_t stamp_ms; /* when it ended */
    bool is_epoch;     /* the stamp counts from 1970 */
};

/** The factory's settings: switched off. */
void latency_init(struct latency_monitor *monitor, uint64_t now_us);

/** What Select 1 of Get Features returns. */
extern const struct latency_settings latency_defaults;

/** Whether a host may have these settings. */
bool latency_settings_are_valid(const struct latency_settings *settings);

/**
 * Change the settings.  Switching the monitor on empties both windows, also if
 * it was on before; switching it off stops it and leaves them.
 *
 * @param settings  valid
 */
void latency_set(struct latency_monitor *monitor,
                 const struct latency_settings *settings, uint64_t now_us);

/** The latency from which on commands are counted, in microseconds. */
uint64_t latency_least_us(const struct latency_monitor *monitor);

/** Begin a new window if the time has come. */
void latency_advance(struct latency_monitor *monitor, uint64_t now_us);

/** Count a command that took at least latency_least_us().  The monitor is on.
 */
void latency_count(struct latency_monitor *monitor,
                   const struct latency_event *event, uint64_t now_us);

/** The log page, after latency_advance(). */
void latency_read(const struct latency_monitor *monitor,
                  struct latency_log *log);

/**
 * Write what outlives a power cycle.
 *
 * @param record    LATENCY_RECORD_LEN bytes, all written
 * @param firmware  the running revision, at most LATENCY_FIRMWARE_LEN
 *   characters
 */
void latency_record_emit(const struct latency_monitor *monitor, uint8_t *record,
                         const char *firmware);

/**
 * Restore it after a power-on.  The windows are restored only if they were
 * counted with the saved settings, and by the running firmware, because a
 * firmware activation empties them.
 *
 * @return false when these bytes are no record; nothing has changed
 */
MUST_USE bool latency_record_parse(struct latency_monitor *monitor,
                                   const uint8_t *record, size_t len,
                                   const char *firmware, uint64_t now_us);

#endif
