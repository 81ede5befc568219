/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Keeps the reservations of namespaces with PTPL (Persist Through Power Loss)
 * in flash.  It implements the target's seam for reservations.
 * Reference: docs/hardware/flash.md, "Reservations"
 */
#ifndef ESSD_VOLUME_RESERVATIONS_H
#define ESSD_VOLUME_RESERVATIONS_H

#include <stddef.h>

#include "firmware/hal/log.h"
#include "firmware/store/write_shares.h"
#include "storage/volume/volume.h"
#include "nvmeof/target/base/reservation.h"

enum {
    RESERVATIONS_UUID_LEN = 16,

    RESERVATIONS_HEADER_LEN = 8,
    RESERVATIONS_NS_LEN = 24,
    RESERVATIONS_REGISTRANT_LEN = 24,
    RESERVATIONS_RECORD_MAX =
        RESERVATIONS_HEADER_LEN +
        NVMF_RESERVATION_NAMESPACES *
            (RESERVATIONS_NS_LEN +
             NVMF_MAX_REGISTRANTS * RESERVATIONS_REGISTRANT_LEN),

    /* As for namespaces: the first writes are always possible.  Hosts that go
     * on at the rate that is allowed wear the flash out in 3.7 years.  Each
     * host has a share of the writes that are left, and the last ones are for
     * commands that fence another host off (Preempt, Clear): a host that has
     * no share left may have to be fenced off.  Each host has a share of those,
     * too: one that registers with many host identifiers, which costs no write
     * while PTPL is off, can preempt itself for ever. */
    RESERVATIONS_WRITES_FREE = 16384,
    RESERVATIONS_WRITES_PER_HOUR = 24,
    RESERVATIONS_WRITES_TO_FENCE = 1024,
};

struct reservations_config {
    struct log *log;
    enum volume_record state;
    const uint8_t *record; /* used during reservations_init() only */
    size_t record_len;
    uint32_t writes;                 /* how often the record was written */
    const struct identity *identity; /* from which UUIDs follow */

    /* Write the record to flash.  NULL: it cannot be saved. */
    bool (*save)(void *ctx, const uint8_t *record, size_t len);
    void *save_ctx;
    uint64_t (*power_on_hours)(void *ctx);
    void *hours_ctx;
};

/* What is kept of one namespace. */
struct kept_reservation {
    bool is_kept;
    uint8_t uuid[RESERVATIONS_UUID_LEN]; /* of the namespace */
    struct reservation state;
};

struct kept_reservations {
    struct kept_reservation ns[NVMF_RESERVATION_NAMESPACES];
};

/* Treat as opaque. */
struct reservations {
    struct reservations_config config;
    uint32_t writes;
    struct write_shares shares; /* of all writes but those to fence */
    struct write_shares fences; /* of the writes to fence another host off */
    bool has_refused;           /* the log says so already */
    bool is_lost; /* the newest record: namespaces are closed as they load */
    struct kept_reservations kept;
    struct kept_reservations draft; /* a change that is not saved yet */
    uint8_t record[RESERVATIONS_RECORD_MAX];
};

/** Start with what flash holds.  If the newest record is lost, each namespace
 * has an Exclusive Access - All Registrants reservation without registrants. */
void reservations_init(struct reservations *reservations,
                       const struct reservations_config *config);

/**
 * Call it once, when the target has loaded what it asks for at its start: if
 * the newest record was lost, keep which namespaces are closed, so that a later
 * start does not close those which are created from now on.
 *
 * @param table  The target does not ask for namespaces of it that extend beyond
 *               the end of the medium.  They are closed, too: the medium may
 *               have its former size again at a later start.
 */
void reservations_loaded(struct reservations *reservations,
                         const struct volume_table *table);

/** The target's seam. */
struct nvmf_reservations reservations_seam(struct reservations *reservations);

/** What hosts have used of the writes, to be kept over a restart. */
struct write_shares *reservations_write_shares(
    struct reservations *reservations);
/** The same of the writes to fence another host off. */
struct write_shares *reservations_fence_shares(
    struct reservations *reservations);

/** @param buf  RESERVATIONS_RECORD_MAX bytes.  @return the record's length */
size_t reservations_emit(const struct kept_reservations *kept, uint8_t *buf);

/** @return false unless the whole record is valid */
MUST_USE bool reservations_parse(struct kept_reservations *kept,
                                 const uint8_t *buf, size_t len);

#endif
