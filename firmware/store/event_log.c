/* SPDX-License-Identifier: BSD-2-Clause */
#include "firmware/store/event_log.h"

#include "firmware/store/flash_layout.h"

static const struct records_area area = {
    .magic = {'E', 'S', 'S', 'D', '-', 'P', 'E', 'L'},
    .addr = FLASH_EVENTS_ADDR,
    .sectors = FLASH_EVENTS_SIZE / FLASH_SECTOR_BYTES,
};

static void take_part(void *ctx, const uint8_t *data)
{
    event_records_add(ctx, data);
}

void store_read_events(const struct flash *flash, struct records_place *place,
                       struct event_records *events)
{
    events->used = 0;
    events->parts = 0;
    records_read(flash, &area, place, EVENT_LOG_SECTORS, take_part, events);
}

bool store_write_event_part(const struct flash *flash,
                            struct records_place *place, const uint8_t *data)
{
    return records_write(flash, &area, place, data);
}
