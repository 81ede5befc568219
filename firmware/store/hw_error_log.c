/* SPDX-License-Identifier: BSD-2-Clause */
#include "firmware/store/hw_error_log.h"

#include "firmware/store/flash_layout.h"

static const struct records_area area = {
    .magic = {'E', 'S', 'S', 'D', '-', 'H', 'W', 'E'},
    .addr = FLASH_HW_ERRORS_ADDR,
    .sectors = FLASH_HW_ERRORS_SIZE / FLASH_SECTOR_BYTES,
};

static void take_record(void *ctx, const uint8_t *data)
{
    struct hw_error error;

    hw_error_parse(&error, data);
    hw_error_records_add(ctx, &error);
}

void store_read_hw_errors(const struct flash *flash,
                          struct records_place *place,
                          struct hw_error_records *records)
{
    records->count = 0;
    records_read(flash, &area, place, 2, take_record, records);
}

bool store_write_hw_error(const struct flash *flash,
                          struct records_place *place,
                          const struct hw_error *error)
{
    uint8_t data[RECORD_DATA_LEN];

    hw_error_emit(error, data);
    return records_write(flash, &area, place, data);
}
