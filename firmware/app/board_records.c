/* SPDX-License-Identifier: BSD-2-Clause */
#include "firmware/app/board_records.h"

#include "firmware/drivers/flash.h"
#include "nvmeof/target/target.h"

/* Newer firmware may have written a longer record than this one does. */
enum { SHARE_RECORD_MAX = FLASH_SECTOR_BYTES - AREA_HEADER_LEN };

static void read_record(struct board_record *record, const struct flash *flash,
                        const struct area *area, struct dram *dram, size_t max)
{
    *record = (struct board_record){
        .flash = flash,
        .area = area,
        .state = AREA_EMPTY,
        .data = dram_alloc(dram, max, 8),
    };
    if (record->data != NULL) {
        record->state = area_read(flash, area, record->data, max, &record->len,
                                  &record->sequence);
    }
}

static bool save_record(void *ctx, const uint8_t *data, size_t len)
{
    struct board_record *record = ctx;

    return area_write(record->flash, record->area, &record->sequence, data,
                      len);
}

static struct operation_store store_of(struct board_record *record)
{
    static const uint8_t states[] = {
        [AREA_OK] = OPERATION_RECORD_OK,
        [AREA_OLDER] = OPERATION_RECORD_OLDER,
        [AREA_EMPTY] = OPERATION_RECORD_NONE,
        [AREA_DAMAGED] = OPERATION_RECORD_DAMAGED,
    };

    return (struct operation_store){
        .state = (enum operation_record)states[record->state],
        .record = record->data,
        .len = record->len,
        .writes = record->sequence,
        .save = record->flash != NULL ? save_record : NULL,
        .ctx = record,
    };
}

void board_records_read(struct board_records *records,
                        const struct flash *flash, struct dram *dram)
{
    read_record(&records->self_test, flash, &self_test_area, dram,
                SELF_TEST_RECORD_MAX);
    read_record(&records->sanitize, flash, &sanitize_area, dram,
                SANITIZE_RECORD_LEN);
    read_record(&records->latency, flash, &latency_area, dram,
                NVMF_LATENCY_RECORD_LEN);
    read_record(&records->shares, flash, &share_area, dram, SHARE_RECORD_MAX);
}

struct operations_stores board_records_stores(struct board_records *records)
{
    return (struct operations_stores){
        .self_test = store_of(&records->self_test),
        .sanitize = store_of(&records->sanitize),
        .latency = store_of(&records->latency),
        .shares = store_of(&records->shares),
    };
}
