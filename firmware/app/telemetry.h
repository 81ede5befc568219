/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Telemetry: dumps of the drive's state for its makers, which hosts fetch with
 * Get Log Page (LIDs 07h and 08h).
 *
 * A host-initiated dump is taken when a host asks for it, and lasts until the
 * next one or until a restart.  A controller-initiated dump is made at the
 * start after a panic, and kept in flash.  What a dump holds: docs/nvme.md.
 */
#ifndef ESSD_APP_TELEMETRY_H
#define ESSD_APP_TELEMETRY_H

#include "firmware/hal/dram.h"
#include "firmware/hal/log.h"
#include "nvmeof/target/target.h"

enum {
    TELEMETRY_BLOCK = 512,
    TELEMETRY_DUMP_MAX = 512 * 1024,
    /* What flash keeps of a controller-initiated dump. */
    TELEMETRY_RECORD_HEAD = 8,
    TELEMETRY_RECORD_MAX = 8192,
    TELEMETRY_REASON_LEN = 128,
};

enum { /* byte offsets in the header of a section */
       TELEMETRY_SECTION_MAGIC = 0, /* "ESSD" */
       TELEMETRY_SECTION_LEN = 4,   /* bytes of data that follow the header */
       TELEMETRY_SECTION_NAME = 8,  /* 24 characters, padded with zeroes */
       TELEMETRY_SECTION_HEADER = 32,
};

struct drive;

/* Why the firmware stopped before this start. */
struct telemetry_panic {
    bool is_trap; /* else an assertion that failed */
    uint32_t count, line;
    uint64_t mcause, mepc, mtval;
    const char *file;
};

struct telemetry_config {
    const struct telemetry_panic *panic; /* NULL: there was none */
    /* The controller-initiated dump in flash; length 0: none. */
    const uint8_t *record;
    size_t record_len;
    /* Write that dump to flash.  NULL: it is not kept. */
    bool (*save)(void *ctx, const uint8_t *record, size_t len);
    void *save_ctx;
};

/* Sections are appended to this. */
struct telemetry_writer {
    uint8_t *buf;
    size_t size, len;
    bool is_cut; /* a section did not fit */
};

/* Treat as opaque. */
struct telemetry {
    struct drive *drive;
    bool (*save)(void *ctx, const uint8_t *record, size_t len);
    void *save_ctx;

    uint8_t *dump; /* the host-initiated one; NULL: no memory for it */
    size_t dump_len;
    uint16_t last_block[NVMF_TELEMETRY_AREAS];
    uint8_t generation;
    char reason[TELEMETRY_REASON_LEN];

    /* The controller-initiated one: TELEMETRY_RECORD_HEAD bytes, then data. */
    uint8_t *record;
    size_t record_len;
};

/** Initialise, and copy the record of *config.  `save` is called only later. */
void telemetry_init(struct telemetry *telemetry, struct drive *drive,
                    struct dram *dram, const struct telemetry_config *config);

/** Make the controller-initiated dump, once the target is there.
 * @param panic  NULL: nothing is done */
void telemetry_record_panic(struct telemetry *telemetry,
                            const struct telemetry_panic *panic);

/** The target's seam.  `telemetry` outlives the target. */
struct nvmf_telemetry telemetry_seam(struct telemetry *telemetry);

/**
 * Append a section.
 *
 * @param data  NULL: the caller has written it behind the space for the header
 */
void telemetry_put(struct telemetry_writer *writer, const char *name,
                   const void *data, size_t len);

#endif
