/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The persistent event log in flash, which survives power cycles.
 * Reference: docs/hardware/flash.md, "Persistent events"
 */
#ifndef ESSD_STORE_EVENT_LOG_H
#define ESSD_STORE_EVENT_LOG_H

#include "firmware/store/event_parts.h"

/** Read the events of earlier boots.  A new drive has none. */
void store_read_events(const struct flash *flash, struct records_place *place,
                       struct event_records *events);

/** Write one record. @return false when the flash refuses it */
MUST_USE bool store_write_event_part(const struct flash *flash,
                                     struct records_place *place,
                                     const uint8_t *data);

#endif
