/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Media faults, between the media engine and the storage that it uses.
 * Reference: docs/faults.md.
 *
 * A request that a rule fails or holds back ends through `done` from
 * fault_media_timer().  It never ends inside the call that started it, as
 * media_backend.h demands.
 */
#ifndef ESSD_HW_FAULT_MEDIA_H
#define ESSD_HW_FAULT_MEDIA_H

#include "hw-model/fault/fault_rule.h"
#include "hw-model/media/media_backend.h"

struct fault_media_config {
    struct fault_table *table;
    struct media_backend below;
    void *ctx;

    /* Requests with these ids write data of the media engine's cache. */
    uint32_t first_cache_id, end_cache_id;

    /* A word of the cache had wrong bits: hw_media_note_cache_error(). */
    void (*cache_error)(void *ctx, bool is_lost);

    /* A request has ended: hw_media_io_done(). */
    void (*done)(void *ctx, uint32_t id, int result);

    uint64_t (*now_ns)(void *ctx);

    /* Call fault_media_timer() at this time; UINT64_MAX: never. */
    void (*set_timer)(void *ctx, uint64_t deadline_ns);

    /* Cut the power; `id` is the rule's.  It returns if capacitors supply the
     * drive. */
    void (*power_cut)(void *ctx, uint32_t id);
};

enum fault_media_state {
    FAULT_REQUEST_PLAIN,   /* Passed through, or not in progress. */
    FAULT_REQUEST_DELAYED, /* In progress below; must not end before due_ns. */
    FAULT_REQUEST_ENDED,   /* Has ended below; `done` waits for due_ns. */
};

struct fault_media_request {
    uint8_t state; /* enum fault_media_state */
    int result;
    uint32_t stuck_by; /* the rule that holds it; 0: none */
    uint64_t due_ns;
};

struct fault_media {
    struct fault_media_config config;
    uint32_t num_ended;
    struct fault_media_request requests[HW_MEDIA_IO_IDS];
};

/** `media` is zeroed; `config` is copied. */
void fault_media_init(struct fault_media *media,
                      const struct fault_media_config *config);

/** The back-end for the media engine. */
struct media_backend fault_media_backend(struct fault_media *media);

/** A request to `below` has ended. @param result  0 or -errno */
void fault_media_below_done(struct fault_media *media, uint32_t id, int result);

/** The deadline has passed, or the table of rules has changed. */
void fault_media_timer(struct fault_media *media);

/** Judge a read of the engine's cache for a host: hw_media_config.cache_bits.
 * @param ctx  struct fault_media */
uint32_t fault_media_cache_bits(void *ctx, uint64_t first, uint64_t end);

/** End every request that is held: the machine is about to stop. */
void fault_media_release(struct fault_media *media);

#endif
