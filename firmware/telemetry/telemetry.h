/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Telemetry: dumps of the drive's state for its makers, which hosts fetch with
 * Get Log Page (LIDs 07h and 08h).
 *
 * A host-initiated dump is taken when a host asks for it, and lasts until the
 * next one or until a restart.  A controller-initiated dump is made at the
 * start after a crash, and kept in flash; the newest crash dump is part of it.
 * What a dump holds: docs/nvme.md.
 */
#ifndef ESSD_TELEMETRY_TELEMETRY_H
#define ESSD_TELEMETRY_TELEMETRY_H

#include "firmware/telemetry/crash_store.h"
#include "firmware/hal/dram.h"
#include "firmware/hal/log.h"
#include "firmware/mgmt/mgmt_service.h"
#include "nvmeof/target/target.h"

enum {
    TELEMETRY_BLOCK = 512,
    TELEMETRY_DUMP_MAX = 512 * 1024,
    /* What flash keeps of a controller-initiated dump. */
    TELEMETRY_RECORD_HEAD = 8,
    TELEMETRY_RECORD_MAX = 8192,
    TELEMETRY_REASON_LEN = 128,
};

/* Where the contents of a dump come from. */
struct telemetry_sources {
    struct log *log;
    const struct mgmt *mgmt; /* the driver, which has the trace records */
    /* The management requests, whose replies a dump holds. */
    const struct mgmt_request *requests;
    size_t request_count;
    void *ctx; /* context of their handlers */
};

/* Why the firmware stopped before this start. */
struct telemetry_panic {
    bool is_watchdog; /* the firmware did not serve the watchdog */
    bool is_trap;     /* else an assertion that failed */
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
    struct crash_store crashes;
};

/* Treat as opaque. */
struct telemetry {
    struct telemetry_sources sources;
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

    struct crash_store crashes;
    uint8_t *crash; /* the newest crash dump; NULL: no memory for it */
    size_t crash_len;
    uint8_t *crash_scratch; /* of console and tools; NULL: no memory for it */
};

/** Initialise, and copy the record of *config.  `save` and the requests are
 * called only later. */
void telemetry_init(struct telemetry *telemetry,
                    const struct telemetry_sources *sources, struct dram *dram,
                    const struct telemetry_config *config);

/** Make the controller-initiated dump, once the requests can be answered.
 * @param panic  NULL: nothing is done */
void telemetry_record_panic(struct telemetry *telemetry,
                            const struct telemetry_panic *panic);

/** The target's seam.  `telemetry` outlives the target. */
struct nvmf_telemetry telemetry_seam(struct telemetry *telemetry);

#endif
