/* SPDX-License-Identifier: BSD-2-Clause */
#include "nvmeof/wire/ocp.h"

#include <string.h>

#include "lib/bytes.h"

enum { GUID_LEN = 16 };

/* ---- Error Recovery. */

void ocp_recovery_emit(uint8_t *buf, uint64_t panic_id)
{
    static const uint8_t guid[GUID_LEN] = {0x44, 0xd9, 0x31, 0x21, 0xfe, 0x30,
                                           0x34, 0xae, 0xab, 0x4d, 0xfd, 0x3d,
                                           0xba, 0x83, 0x19, 0x5a};

    memset(buf, 0, LOG_OCP_RECOVERY_LEN);
    buf[OCP_RECOVERY_DEVICE_ACTION] = OCP_RECOVERY_NO_ACTION;
    put_le64(buf + OCP_RECOVERY_PANIC_ID, panic_id);
    put_le16(buf + OCP_RECOVERY_VERSION, 2);
    memcpy(buf + OCP_RECOVERY_GUID, guid, sizeof(guid));
}

/* ---- The latency monitor. */

void latency_feature_parse(struct latency_feature *feature, const uint8_t *buf)
{
    uint8_t others = 0;

    for (size_t i = LATENCY_FEATURE_RESERVED; i < LATENCY_FEATURE_LEN; i++) {
        others |= buf[i];
    }
    *feature = (struct latency_feature){
        .settings =
            {
                .is_on = buf[LATENCY_FEATURE_ENABLE] == 1,
                .timer = get_le16(buf + LATENCY_FEATURE_TIMER),
                .keeps_largest = get_le16(buf + LATENCY_FEATURE_MODES),
                .min_window = buf[LATENCY_FEATURE_MIN_WINDOW],
            },
        .debug_triggers = get_le16(buf + LATENCY_FEATURE_TRIGGERS),
        .discard = buf[LATENCY_FEATURE_DISCARD],
        .enable = buf[LATENCY_FEATURE_ENABLE],
        .has_reserved = others != 0,
    };
    memcpy(feature->settings.threshold, buf + LATENCY_FEATURE_THRESHOLDS,
           LATENCY_BUCKETS);
}

void latency_feature_emit(uint8_t *buf, const struct latency_settings *settings)
{
    memset(buf, 0, LATENCY_FEATURE_LEN);
    put_le16(buf + LATENCY_FEATURE_TIMER, settings->timer);
    memcpy(buf + LATENCY_FEATURE_THRESHOLDS, settings->threshold,
           LATENCY_BUCKETS);
    put_le16(buf + LATENCY_FEATURE_MODES, settings->keeps_largest);
    buf[LATENCY_FEATURE_MIN_WINDOW] = settings->min_window;
    buf[LATENCY_FEATURE_ENABLE] = settings->is_on;
}

/* Where the count of a bucket and a kind of command is in a window. */
static size_t count_at(unsigned int bucket, unsigned int kind)
{
    return LATENCY_WINDOW_COUNTS + bucket * 16 + (LATENCY_KINDS - kind) * 4;
}

/* The number of a stamp or latency in its list, which begins with the last
 * bucket's Deallocate. */
static size_t place_of(unsigned int bucket, unsigned int kind)
{
    return (size_t)(LATENCY_BUCKETS - 1 - bucket) * LATENCY_KINDS +
           (LATENCY_KINDS - 1 - kind);
}

void latency_window_emit(uint8_t *buf, const struct latency_window *window)
{
    memset(buf, 0, LATENCY_WINDOW_LEN);
    for (unsigned int bucket = 0; bucket < LATENCY_BUCKETS; bucket++) {
        for (unsigned int kind = 0; kind < LATENCY_KINDS; kind++) {
            size_t place = place_of(bucket, kind);

            put_le32(buf + count_at(bucket, kind), window->count[bucket][kind]);
            put_le64(buf + LATENCY_WINDOW_STAMPS + 8 * place,
                     window->stamp_ms[bucket][kind]);
            put_le16(buf + LATENCY_WINDOW_MEASURED + 2 * place,
                     window->measured_ms[bucket][kind]);
        }
    }
    put_le16(buf + LATENCY_WINDOW_UNITS, window->is_epoch);
}

void latency_window_parse(struct latency_window *window, const uint8_t *buf)
{
    for (unsigned int bucket = 0; bucket < LATENCY_BUCKETS; bucket++) {
        for (unsigned int kind = 0; kind < LATENCY_KINDS; kind++) {
            size_t place = place_of(bucket, kind);

            window->count[bucket][kind] =
                get_le32(buf + count_at(bucket, kind));
            window->stamp_ms[bucket][kind] =
                get_le64(buf + LATENCY_WINDOW_STAMPS + 8 * place);
            window->measured_ms[bucket][kind] =
                get_le16(buf + LATENCY_WINDOW_MEASURED + 2 * place);
        }
    }
    window->is_epoch = get_le16(buf + LATENCY_WINDOW_UNITS);
}

void latency_log_emit(uint8_t *buf, const struct latency_log *log)
{
    static const uint8_t guid[GUID_LEN] = {0x92, 0x7a, 0xc0, 0x8c, 0xd0, 0x84,
                                           0x6c, 0x9c, 0x70, 0x43, 0xe6, 0xd4,
                                           0x58, 0x5e, 0xd4, 0x85};
    const struct latency_settings *settings = &log->settings;

    memset(buf, 0, LOG_OCP_LATENCY_LEN);
    buf[LATENCY_LOG_STATUS] =
        (uint8_t)((settings->is_on ? LATENCY_STATUS_ON : 0) |
                  LATENCY_STATUS_MODES | LATENCY_STATUS_MEASURED);
    put_le16(buf + LATENCY_LOG_TIMER, log->timer);
    put_le16(buf + LATENCY_LOG_TIMER_THRESHOLD, settings->timer);
    memcpy(buf + LATENCY_LOG_THRESHOLDS, settings->threshold, LATENCY_BUCKETS);
    put_le16(buf + LATENCY_LOG_MODES, settings->keeps_largest);
    buf[LATENCY_LOG_MIN_WINDOW] = settings->min_window;
    latency_window_emit(buf + LATENCY_LOG_ACTIVE, &log->active);
    latency_window_emit(buf + LATENCY_LOG_STATIC, &log->fixed);
    put_le64(buf + LATENCY_LOG_DEBUG_STAMP, LATENCY_NO_STAMP);
    put_le16(buf + LATENCY_LOG_VERSION, 1);
    memcpy(buf + LATENCY_LOG_GUID, guid, sizeof(guid));
}

/* ---- Device Capabilities. */

void ocp_capabilities_emit(uint8_t *buf,
                           const struct ocp_capabilities *capabilities)
{
    static const uint8_t guid[GUID_LEN] = {0x97, 0x42, 0x05, 0x0d, 0xd1, 0xe1,
                                           0xc9, 0x98, 0x5d, 0x49, 0x58, 0x4b,
                                           0x91, 0x3c, 0x05, 0xb7};

    memset(buf, 0, LOG_OCP_CAPABILITIES_LEN);
    put_le16(buf + OCP_CAPABILITIES_OUT_OF_BAND, capabilities->out_of_band);
    put_le16(buf + OCP_CAPABILITIES_WRITE_ZEROES, capabilities->write_zeroes);
    put_le16(buf + OCP_CAPABILITIES_SANITIZE, capabilities->sanitize);
    put_le16(buf + OCP_CAPABILITIES_DATASET, capabilities->dataset);
    put_le16(buf + OCP_CAPABILITIES_FUSED, capabilities->fused);
    put_le16(buf + OCP_CAPABILITIES_VERSION, 1);
    memcpy(buf + OCP_CAPABILITIES_GUID, guid, sizeof(guid));
}
