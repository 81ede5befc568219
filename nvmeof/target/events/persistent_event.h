/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The state of the persistent event log: persistent_event.c.
 */
#ifndef ESSD_NVMEOF_TARGET_EVENTS_PERSISTENT_EVENT_H
#define ESSD_NVMEOF_TARGET_EVENTS_PERSISTENT_EVENT_H

#include "nvmeof/target/target.h"
#include "nvmeof/wire/persistent_event.h"

/* A host's view of the persistent event log, while it reads the page. */
struct pel_context {
    bool exists;
    bool existed; /* before the command that reads */
    bool has_time;
    uint16_t generation;
    uint32_t events, length; /* of the page */
    uint64_t first, end;     /* its events in the ring */
    uint64_t time_ms;
    uint64_t reset_us; /* the last reset of the controller */
    /* The event that ends at walk_end is at this offset of the page. */
    uint32_t walk_offset;
    uint64_t walk_end;
};

/* The persistent event log: persistent_event.c */
enum {
    PEL_PAGE_MAX = NVMF_EVENT_LOG_MAX,
    PEL_RING_BYTES = 2 * PEL_PAGE_MAX,
    PEL_BURST = 256,
    PEL_PACE_US = 10 * 1000 * 1000,
    PEL_FOR_DRIVE = 32, /* of PEL_BURST, which no host can use up */
    PEL_SHARES = 16,
    PEL_HALVE_US = 32 * PEL_PACE_US,
};

/* How many events of each type a host has caused lately. */
struct pel_share {
    uint32_t host; /* ctrl_host_number(); 0: this element is free */
    uint16_t used[PEL_TYPES];
};

struct persistent_log {
    uint8_t ring[PEL_RING_BYTES];
    uint64_t start, end; /* of the events in the ring; both only grow */
    uint64_t count;      /* number of the newest event */
    uint32_t kept;       /* events in the ring */
    uint16_t generation; /* of the last context */
    uint64_t started_us;
    uint64_t smart_hours; /* hours of power-on at the last snapshot */
    uint8_t warning;      /* bits of Critical Warning that were set last */
    /* For each type, the time from which PEL_BURST events may be recorded
     * again.  PEL_TYPE_VENDOR has index 0. */
    uint64_t pace_us[PEL_TYPES];
    struct pel_share share[PEL_SHARES];
    uint64_t halved_us; /* when share[].used were halved last */
    struct pel_context context[NVMF_MAX_HOSTS]; /* of each controller */
};

#endif
