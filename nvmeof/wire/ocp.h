/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Log pages C1h, C3h and C4h and feature C5h of the OCP Datacenter NVMe SSD
 * Specification 2.0.  Page C0h is in log.h.
 */
#ifndef ESSD_NVMEOF_WIRE_OCP_H
#define ESSD_NVMEOF_WIRE_OCP_H

#include "lib/util.h"

/* ---- Error Recovery, LID C1h. */

enum { /* byte offsets */
       OCP_RECOVERY_RESET_ACTION = 2,
       OCP_RECOVERY_DEVICE_ACTION = 3,
       OCP_RECOVERY_PANIC_ID = 4,
       OCP_RECOVERY_CAPABILITIES = 12,
       OCP_RECOVERY_VERSION = 494,
       OCP_RECOVERY_GUID = 496,
       LOG_OCP_RECOVERY_LEN = 512,
       OCP_RECOVERY_NO_ACTION = 0x01, /* in OCP_RECOVERY_DEVICE_ACTION */
};

/** @param buf       LOG_OCP_RECOVERY_LEN bytes, all written.
 *  @param panic_id  of the last panic; 0: there was none */
void ocp_recovery_emit(uint8_t *buf, uint64_t panic_id);

/* ---- The latency monitor: feature C5h and log page C3h. */

enum {
    LATENCY_BUCKETS = 4, /* 0: from threshold A on ... 3: from D on */
    LATENCY_TIMER_MINUTES = 5,
    LATENCY_THRESHOLD_MS = 5, /* threshold n stands for n + 1 of these */
    LATENCY_WINDOW_MS = 100,
    LATENCY_MODES = 0x0fff, /* the bits that exist */
};
#define LATENCY_NO_STAMP UINT64_MAX

/* The commands that are measured, in the order of bits. */
enum latency_kind {
    LATENCY_READ,
    LATENCY_WRITE,
    LATENCY_DEALLOCATE,
    LATENCY_KINDS
};

/* The bit of a bucket and a kind of command in masks. */
static inline uint16_t latency_bit(unsigned int bucket, unsigned int kind)
{
    return (uint16_t)BIT(bucket * LATENCY_KINDS + kind);
}

/* What a host configures. */
struct latency_settings {
    bool is_on;
    uint16_t timer;                     /* of a window, in 5 minutes */
    uint8_t threshold[LATENCY_BUCKETS]; /* A to D */
    /* latency_bit(): set to keep the largest latency, clear for the first */
    uint16_t keeps_largest;
    uint8_t min_window; /* between updates of a largest one, in 100 ms */
};

/* What was counted in one period of the bucket timer. */
struct latency_window {
    uint32_t count[LATENCY_BUCKETS][LATENCY_KINDS];
    /* Of the first or largest latency; LATENCY_NO_STAMP: there was none. */
    uint64_t stamp_ms[LATENCY_BUCKETS][LATENCY_KINDS];
    uint16_t measured_ms[LATENCY_BUCKETS][LATENCY_KINDS];
    /* latency_bit(): the stamp counts from 1970, not in time of power-on */
    uint16_t is_epoch;
};

enum { /* byte offsets in the data of feature C5h */
       LATENCY_FEATURE_TIMER = 0,
       LATENCY_FEATURE_THRESHOLDS = 2,
       LATENCY_FEATURE_MODES = 6,
       LATENCY_FEATURE_MIN_WINDOW = 8,
       LATENCY_FEATURE_TRIGGERS = 9,
       LATENCY_FEATURE_DISCARD = 11,
       LATENCY_FEATURE_ENABLE = 12,
       LATENCY_FEATURE_RESERVED = 13,
       LATENCY_FEATURE_LEN = 4096,
};

enum { /* LATENCY_FEATURE_DISCARD */
       LATENCY_DISCARD_NOTHING,
       LATENCY_DISCARD_LOG,      /* and use all other fields */
       LATENCY_DISCARD_LOG_ONLY, /* and ignore all other fields */
       LATENCY_DISCARDS
};

/* The data of Set Features. */
struct latency_feature {
    struct latency_settings settings;
    uint16_t debug_triggers;
    uint8_t discard;
    uint8_t enable;
    bool has_reserved; /* a reserved byte is not 0 */
};

/** @param buf  LATENCY_FEATURE_LEN bytes */
void latency_feature_parse(struct latency_feature *feature, const uint8_t *buf);

/** @param buf  LATENCY_FEATURE_LEN bytes, all written. */
void latency_feature_emit(uint8_t *buf,
                          const struct latency_settings *settings);

enum { /* byte offsets in log page C3h */
       LATENCY_LOG_STATUS = 0,
       LATENCY_LOG_TIMER = 2,
       LATENCY_LOG_TIMER_THRESHOLD = 4,
       LATENCY_LOG_THRESHOLDS = 6,
       LATENCY_LOG_MODES = 10,
       LATENCY_LOG_MIN_WINDOW = 12,
       LATENCY_LOG_ACTIVE = 32,  /* a window */
       LATENCY_LOG_STATIC = 240, /* a window */
       LATENCY_LOG_DEBUG_STAMP = 452,
       LATENCY_LOG_VERSION = 494,
       LATENCY_LOG_GUID = 496,
       LOG_OCP_LATENCY_LEN = 512,
};

enum { /* byte offsets in a window */
       /* 16 bytes for each bucket, 0 first: reserved, Deallocate, Write, Read
        */
       LATENCY_WINDOW_COUNTS = 0,
       /* 8 bytes each, bucket 3 first: Deallocate, Write, Read */
       LATENCY_WINDOW_STAMPS = 64,
       /* 2 bytes each, in the same order */
       LATENCY_WINDOW_MEASURED = 160,
       LATENCY_WINDOW_UNITS = 184,
       LATENCY_WINDOW_LEN = 186,
};

enum { /* LATENCY_LOG_STATUS */
       LATENCY_STATUS_ON = 0x01,
       LATENCY_STATUS_MODES = 0x02,    /* the latency mode is supported */
       LATENCY_STATUS_MEASURED = 0x04, /* as are measured latencies */
};

struct latency_log {
    struct latency_settings settings;
    uint16_t timer; /* of the active window, in 5 minutes */
    struct latency_window active, fixed;
};

/** @param buf  LOG_OCP_LATENCY_LEN bytes, all written. */
void latency_log_emit(uint8_t *buf, const struct latency_log *log);

/** @param buf  LATENCY_WINDOW_LEN bytes, all written. */
void latency_window_emit(uint8_t *buf, const struct latency_window *window);

/** @param buf  LATENCY_WINDOW_LEN bytes */
void latency_window_parse(struct latency_window *window, const uint8_t *buf);

/* ---- Device Capabilities, LID C4h. */

enum { /* byte offsets, two bytes each */
       OCP_CAPABILITIES_OUT_OF_BAND = 2,
       OCP_CAPABILITIES_WRITE_ZEROES = 4,
       OCP_CAPABILITIES_SANITIZE = 6,
       OCP_CAPABILITIES_DATASET = 8,
       OCP_CAPABILITIES_FUSED = 12,
       OCP_CAPABILITIES_VERSION = 4078,
       OCP_CAPABILITIES_GUID = 4080,
       LOG_OCP_CAPABILITIES_LEN = 4096,
};

enum {
    OCP_OUT_OF_BAND_SMBUS = 0x01, /* MCTP over SMBus */
    OCP_OUT_OF_BAND_BASIC = 0x04, /* NVMe Basic Management Command */
    OCP_IS_SUPPORTED = 0x01,      /* in each of the other fields */
    OCP_WRITE_ZEROES_DEAC = 0x02,
    OCP_WRITE_ZEROES_FUA = 0x04,
    OCP_SANITIZE_BLOCK_ERASE = 0x04,
    OCP_SANITIZE_OVERWRITE = 0x08,
    OCP_SANITIZE_DEALLOCATES = 0x10,
    OCP_DATASET_DEALLOCATE = 0x02,
};

/* OCP_... bits; 0: the command does not exist. */
struct ocp_capabilities {
    uint16_t out_of_band, write_zeroes, sanitize, dataset, fused;
};

/** @param buf  LOG_OCP_CAPABILITIES_LEN bytes, all written. */
void ocp_capabilities_emit(uint8_t *buf,
                           const struct ocp_capabilities *capabilities);

#endif
