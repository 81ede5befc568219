/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The events of the persistent event log as records (records.h).  An event
 * takes one or several of them in a row.  An event whose records are not all
 * intact does not count.
 * Reference: docs/hardware/flash.md, "Persistent events"
 */
#ifndef ESSD_STORE_EVENT_PARTS_H
#define ESSD_STORE_EVENT_PARTS_H

#include "firmware/store/records.h"

enum {
    EVENT_PART_BYTES = 52,  /* of an event in each record */
    EVENT_LOG_SECTORS = 17, /* the newest ones, which are read at the start */
    /* In struct event_records, before each event: its number and length. */
    EVENT_RECORDS_HEAD = 6,
    EVENT_RECORDS_BYTES = EVENT_LOG_SECTORS * RECORDS_IN_SECTOR *
                          (EVENT_PART_BYTES + EVENT_RECORDS_HEAD),
};

/* Events from flash, oldest first.  Treat as opaque; all zeroes: none. */
struct event_records {
    size_t used;    /* bytes of whole events */
    uint32_t parts; /* of the event that is being put together after them */
    uint8_t bytes[EVENT_RECORDS_BYTES];
};

/** The number of records that an event of `len` bytes takes. */
unsigned int event_part_count(uint16_t len);

/**
 * Make one of the records of an event.
 *
 * @param data  RECORD_DATA_LEN bytes, all written
 * @param part  from 0 on
 */
void event_part_emit(uint8_t *data, uint32_t number, const uint8_t *event,
                     uint16_t len, unsigned int part);

/** Take the next record, as event_part_emit() made it. */
void event_records_add(struct event_records *events, const uint8_t *data);

/**
 * Read the next event.
 *
 * @param at  0 for the first event; set to where the one after it is
 * @return false when there are no more
 */
MUST_USE bool event_records_next(const struct event_records *events, size_t *at,
                                 uint32_t *number, const uint8_t **event,
                                 uint16_t *len);

#endif
