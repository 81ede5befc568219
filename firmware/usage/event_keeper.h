/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Keeps the persistent event log over power cycles.  The events are read at the
 * start.  A new one is written to flash within milliseconds; a power cut before
 * that loses it.
 *
 * Wear: in the long run, hosts and the ports' modules can cause one event in 10
 * s for each of 12 types (nvmeof/target/events/persistent_event.c).  Together
 * these events take at most four records a second.  63 records cost one erasure
 * (firmware/store/records.h) of one of 256 sectors, each of which endures
 * 100,000 erasures: 12 years.
 */
#ifndef ESSD_USAGE_EVENT_KEEPER_H
#define ESSD_USAGE_EVENT_KEEPER_H

#include "firmware/store/event_parts.h"
#include "nvmeof/target/target.h"

struct event_keeper_config {
    /* The events in flash, needed until event_keeper_start(); NULL: none. */
    const struct event_records *events;

    /* Write a record of RECORD_DATA_LEN bytes.  NULL: nothing is kept. */
    bool (*save)(void *ctx, const uint8_t *record);
    void *save_ctx;
};

/* Treat as opaque. */
struct event_keeper {
    bool (*save)(void *ctx, const uint8_t *record);
    void *save_ctx;
    struct nvmf_target *target;
    uint64_t saved;     /* number of the last event in flash */
    unsigned int parts; /* records of the next one that are in flash */
};

/** Restore the events of earlier power cycles. */
void event_keeper_start(struct event_keeper *keeper,
                        const struct event_keeper_config *config,
                        struct nvmf_target *target);

/**
 * Write a few records, if there are new events.
 *
 * @return when to call this again; UINT64_MAX: when there are new events
 */
uint64_t event_keeper_step(struct event_keeper *keeper, uint64_t now_us);

/** Write all events, before an orderly power-off. */
void event_keeper_stop(struct event_keeper *keeper);

#endif
