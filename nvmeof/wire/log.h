/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Log pages: error information, SMART / health, firmware slots.
 * Spec: NVM Express Base 1.4 section 5.14.1.
 */
#ifndef ESSD_NVMEOF_WIRE_LOG_H
#define ESSD_NVMEOF_WIRE_LOG_H

#include <stdbool.h>
#include <stdint.h>

enum { /* byte offsets in an error information entry; little-endian */
       ERROR_COUNT = 0,
       ERROR_SQID = 8,
       ERROR_CID = 10,
       ERROR_STATUS = 12,   /* as in a CQE, phase bit 0 */
       ERROR_LOCATION = 14, /* byte in bits 7:0, bit in 10:8 */
       ERROR_LBA = 16,
       ERROR_NSID = 24,
       ERROR_VENDOR_LOG = 28, /* log page with more information, or 0 */
       ERROR_TRTYPE = 29,
       LOG_ERROR_ENTRY_LEN = 64,
};

enum {                   /* the Timestamp data structure: section 5.21.1.14 */
       TIMESTAMP_MS = 0, /* 48 bits: since 1970-01-01, or since reset */
       TIMESTAMP_ORIGIN = 6, /* bits 3:1: 1 if it was set; bit 0: it stopped */
       LOG_TIMESTAMP_LEN = 8,
};
#define LOG_TIMESTAMP_MASK 0xffffffffffffull

enum { /* byte offsets in an entry of LOG_ERROR_TIMES; our own */
       ERROR_TIME_COUNT = 0, /* as ERROR_COUNT */
       ERROR_TIME_TIMESTAMP = 8,
       LOG_ERROR_TIME_LEN = 16,
};

enum { /* byte offsets in SMART / health information */
       SMART_CRITICAL_WARNING = 0,
       SMART_TEMPERATURE = 1,
       SMART_AVAILABLE_SPARE = 3,
       SMART_SPARE_THRESHOLD = 4,
       SMART_PERCENTAGE_USED = 5,
       SMART_ENDURANCE_WARNING = 6, /* of all endurance groups */
       SMART_DATA_UNITS_READ = 32,  /* this field and all below have 16 bytes */
       SMART_DATA_UNITS_WRITTEN = 48,
       SMART_HOST_READS = 64,
       SMART_HOST_WRITES = 80,
       SMART_POWER_CYCLES = 112,
       SMART_POWER_ON_HOURS = 128,
       SMART_UNSAFE_SHUTDOWNS = 144,
       SMART_MEDIA_ERRORS = 160,
       SMART_ERROR_LOG_ENTRIES = 176,
       SMART_SENSORS = 200, /* eight temperatures of 2 bytes each */
       LOG_SMART_LEN = 512,
};

enum { /* SMART_CRITICAL_WARNING bits */
       SMART_WARN_SPARE = 0x01,
       SMART_WARN_TEMPERATURE = 0x02,
       SMART_WARN_RELIABILITY = 0x04,
       SMART_WARN_READ_ONLY = 0x08,
       SMART_WARN_VOLATILE_MEMORY = 0x10,
};

enum { /* byte offsets in firmware slot information */
       FIRMWARE_SLOT_AFI = 0,
       FIRMWARE_SLOT_NEXT_SHIFT = 4, /* of AFI: the slot after a reset */
       FIRMWARE_SLOT_FRS1 = 8,       /* 8 bytes each */
       LOG_FIRMWARE_SLOT_LEN = 512,
};

enum {
    LOG_CHANGED_NS_LIST_LEN = 4096,
    LOG_COMMANDS_EFFECTS_LEN = 4096,
    COMMANDS_EFFECTS_ADMIN = 0, /* 256 dwords each */
    COMMANDS_EFFECTS_IO = 1024,
    COMMANDS_EFFECTS_CSUPP = 0x1, /* supported */
    COMMANDS_EFFECTS_LBCC = 0x2,  /* changes user data */
    COMMANDS_EFFECTS_NCC = 0x4,   /* changes the capabilities of namespaces */
    COMMANDS_EFFECTS_NIC = 0x8,   /* changes which namespaces there are */
};

enum { /* byte offsets in Device Self-test: section 5.14.1.6 */
       SELF_TEST_CURRENT = 0, /* bits 3:0: the test in progress */
       SELF_TEST_PERCENT = 1,
       SELF_TEST_RESULTS = 4, /* 20 results, newest first */

       SELF_TEST_RESULT_STATUS = 0, /* code in bits 7:4, result in 3:0 */
       SELF_TEST_RESULT_SEGMENT = 1,
       SELF_TEST_RESULT_VALID = 2,
       SELF_TEST_RESULT_HOURS = 4,
       SELF_TEST_RESULT_NSID = 12,
       SELF_TEST_RESULT_LBA = 16,
       SELF_TEST_RESULT_SCT = 24,
       SELF_TEST_RESULT_SC = 25,
       SELF_TEST_RESULT_LEN = 28,
       LOG_SELF_TEST_LEN = 564,
};

enum { /* SELF_TEST_RESULT_VALID bits */
       SELF_TEST_VALID_NSID = 0x1,
       SELF_TEST_VALID_LBA = 0x2,
       SELF_TEST_VALID_SCT = 0x4,
       SELF_TEST_VALID_SC = 0x8,
};

enum { /* byte offsets in Sanitize Status: section 5.14.1.16.2 */
       SANITIZE_PROGRESS = 0, /* FFFFh: none is in progress */
       SANITIZE_STATUS = 2,
       SANITIZE_CDW10 = 4,
       SANITIZE_OVERWRITE_S = 8, /* estimates: seconds, FFFFFFFFh: none */
       SANITIZE_ERASE_S = 12,
       SANITIZE_CRYPTO_S = 16,
       SANITIZE_OVERWRITE_KEEP_S = 20,
       SANITIZE_ERASE_KEEP_S = 24,
       SANITIZE_CRYPTO_KEEP_S = 28,
       LOG_SANITIZE_LEN = 512,

       SANITIZE_STATUS_PASSES_SHIFT = 3, /* in SANITIZE_STATUS */
       SANITIZE_STATUS_ERASED = 0x100,   /* Global Data Erased */
       SANITIZE_NO_PROGRESS = 0xffff,
};
#define SANITIZE_NO_ESTIMATE 0xffffffffu

enum { /* Supported Log Pages, and Feature Identifiers Effects: a dword for each
        * identifier */
       LOG_SUPPORTED_LEN = 1024,
       LOG_SUPPORTED_LSUPP = 0x1,
       LOG_SUPPORTED_PEL_HEADER = 0x10000, /* LID 0Dh has PEL_HEADER */
       LOG_FEATURE_EFFECTS_LEN = 1024,
       FEATURE_EFFECTS_FSUPP = 0x1,
       FEATURE_EFFECTS_CTRL_SCOPE = 0x200000,
       FEATURE_EFFECTS_SUBSYSTEM_SCOPE = 0x2000000,
       LOG_MI_EFFECTS_LEN = 4096,
};

enum { /* byte offsets in Endurance Group Information, LID 09h */
       ENDURANCE_WARNING = 0,
       ENDURANCE_SPARE = 3,
       ENDURANCE_SPARE_THRESHOLD = 4,
       ENDURANCE_USED = 5,
       ENDURANCE_UNITS_READ = 48, /* 10^9 bytes; this field and all below have
                                   * 16 bytes */
       ENDURANCE_UNITS_WRITTEN = 64,
       ENDURANCE_MEDIA_WRITTEN = 80,
       ENDURANCE_HOST_READS = 96,
       ENDURANCE_HOST_WRITES = 112,
       ENDURANCE_MEDIA_ERRORS = 128,
       ENDURANCE_ERROR_ENTRIES = 144,
       ENDURANCE_CAPACITY = 160, /* bytes */
       ENDURANCE_FREE = 176,
       LOG_ENDURANCE_LEN = 512,
       ENDURANCE_GROUP_ID = 1, /* of the only group */
};

struct log_endurance {
    uint8_t warning; /* spare, reliability and read-only bits of SMART's */
    uint8_t available_spare_percent, spare_threshold_percent, percentage_used;
    uint64_t read_bytes, written_bytes;
    uint64_t host_reads, host_writes;
    uint64_t media_errors, error_log_entries;
    uint64_t total_bytes, free_bytes;
};

/** @param buf  LOG_ENDURANCE_LEN bytes, all written. */
void log_endurance_emit(uint8_t *buf, const struct log_endurance *endurance);

enum { /* byte offsets in the header of telemetry, LIDs 07h and 08h */
       TELEMETRY_LID = 0,
       TELEMETRY_IEEE = 5,
       TELEMETRY_LAST_BLOCK = 8, /* 2 bytes for each of data areas 1 to 3 */
       TELEMETRY_HOST_GENERATION = 381,
       TELEMETRY_CTRL_AVAILABLE = 382,
       TELEMETRY_CTRL_GENERATION = 383,
       TELEMETRY_REASON = 384,
       TELEMETRY_HEADER_LEN = 512, /* also the length of a block */
       TELEMETRY_CREATE = 0x100,   /* in dword 10: take a new dump */
};

struct log_telemetry {
    uint8_t lid;
    const uint8_t *ieee;        /* 3 bytes */
    const uint16_t *last_block; /* of data areas 1 to 3 */
    uint8_t host_generation;
    bool is_available; /* the controller has made a dump */
    uint8_t ctrl_generation;
    const char *reason; /* at most 128 characters */
};

/** @param buf  TELEMETRY_HEADER_LEN bytes, all written. */
void log_telemetry_emit(uint8_t *buf, const struct log_telemetry *telemetry);

enum { /* byte offsets in OCP's SMART / Health Information Extended, LID C0h */
       OCP_SMART_UNITS_WRITTEN = 0, /* bytes, 16 bytes wide, as the next one */
       OCP_SMART_UNITS_READ = 16,
       OCP_SMART_BAD_BLOCKS = 32,     /* 6 bytes: that have failed */
       OCP_SMART_BAD_NORMALIZED = 38, /* 100: none of those that may fail */
       OCP_SMART_XOR_RECOVERED = 48,
       OCP_SMART_READ_ERRORS = 56,
       OCP_SMART_SOFT_READS = 64,
       OCP_SMART_DETECTED =
           72, /* end-to-end errors, 4 bytes, as the next one */
       OCP_SMART_CORRECTED = 76,
       OCP_SMART_MOST_ERASED = 88, /* highest erase count of a block, 4 bytes */
       OCP_SMART_LEAST_ERASED = 92,
       OCP_SMART_SPEC_VERSION = 98, /* errata, point, minor, major */
       OCP_SMART_INCOMPLETE_SHUTDOWNS = 112,
       OCP_SMART_FREE_BLOCKS = 120, /* per cent */
       OCP_SMART_CAPACITOR_HEALTH = 128,
       OCP_SMART_NUSE = 152,
       OCP_SMART_VERSION = 494,
       OCP_SMART_GUID = 496,
       LOG_OCP_SMART_LEN = 512,
       /* Capacitor health: the energy of the capacitors, as a percentage of
        * what the drive needs when the power fails. */
       OCP_CAPACITOR_GOOD = 100,
       OCP_CAPACITOR_FAILED = 0,
       OCP_NO_CAPACITOR = 0xffff,
};

/* What the drive knows of OCP's page; all other fields are 0. */
struct log_ocp_smart {
    uint64_t written_bytes, read_bytes;        /* of the medium */
    uint64_t read_errors, rebuilt, soft_reads; /* units of flash */
    uint32_t detected, corrected;              /* end-to-end errors */
    uint32_t failed_blocks;                    /* blocks of flash */
    /* How often the most and the least erased block were erased. */
    uint32_t most_erased, least_erased;
    uint8_t left_percent; /* of the blocks that may fail: have not failed */
    uint32_t incomplete_shutdowns;
    uint64_t used_blocks; /* NUSE of all namespaces */
    uint8_t free_percent;
    uint16_t capacitor_health;
};

/** @param buf  LOG_OCP_SMART_LEN bytes, all written. */
void log_ocp_smart_emit(uint8_t *buf, const struct log_ocp_smart *smart);

struct log_error {
    uint64_t count; /* number of the error, from 1; 0 if the entry is unused */
    uint16_t sqid, cid; /* FFFFh if it belongs to no command */
    uint16_t status;    /* enum nvme_status with flags */
    uint16_t location;  /* FFFFh if it names no field */
    uint64_t lba;
    uint32_t nsid;
    uint8_t trtype;
    uint8_t vendor_log;
    bool has_time;    /* the clock was set before */
    uint64_t time_ms; /* since 1970-01-01 if has_time, else since reset */
    uint32_t owner;   /* whose command it was; 0: the drive.  Not in the page */
};

enum { SMART_SENSOR_COUNT = 8 };

struct log_smart {
    uint8_t critical_warning;
    uint16_t temperature_k;
    uint8_t available_spare_percent;
    uint8_t spare_threshold_percent;
    uint8_t percentage_used;
    uint64_t data_units_read,
        data_units_written; /* in units of 1000 * 512 bytes */
    uint64_t host_reads, host_writes;
    uint64_t power_cycles, power_on_hours, unsafe_shutdowns;
    uint64_t media_errors, error_log_entries;
    uint16_t sensor_k[SMART_SENSOR_COUNT]; /* 0: there is no such sensor */
};

/** @param buf  LOG_ERROR_ENTRY_LEN bytes, all written. */
void log_error_emit(uint8_t *buf, const struct log_error *error);

/** @param buf  LOG_ERROR_TIME_LEN bytes, all written. */
void log_error_time_emit(uint8_t *buf, const struct log_error *error);

/**
 * @param buf     LOG_TIMESTAMP_LEN bytes, all written.
 * @param is_set  whether `ms` counts from 1970-01-01; else it counts from a
 *                reset
 */
void log_timestamp_emit(uint8_t *buf, uint64_t ms, bool is_set);

/** @param buf  LOG_SMART_LEN bytes, all written. */
void log_smart_emit(uint8_t *buf, const struct log_smart *smart);

/**
 * @param buf   LOG_FIRMWARE_SLOT_LEN bytes, all written.
 * @param slot  revisions of at most 8 characters; "" if a slot is empty.
 */
void log_firmware_slot_emit(uint8_t *buf, uint8_t active_slot,
                            const char *const *slot, uint8_t count);

#endif
