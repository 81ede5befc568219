/* SPDX-License-Identifier: BSD-2-Clause */
#include "firmware/store/error_log.h"

#include "firmware/store/flash_layout.h"
#include "lib/bytes.h"

enum { /* byte offsets in a record: 8 bytes each; from ERROR_NSID on 4, from
        * ERROR_SQID on 2, from ERROR_TRTYPE on 1 */
       ERROR_COUNT = 0,
       ERROR_LBA = 8,
       ERROR_TIME = 16,
       ERROR_NSID = 24,
       ERROR_SQID = 28,
       ERROR_CID = 30,
       ERROR_STATUS = 32,
       ERROR_LOCATION = 34,
       ERROR_TRTYPE = 36,
       ERROR_VENDOR_LOG = 37,
       ERROR_HAS_TIME = 38,
       ERROR_OWNER = 40, /* 4 bytes; 0 in older records.  Reserved bytes
                          * follow */
};

static const struct records_area area = {
    .magic = {'E', 'S', 'S', 'D', '-', 'E', 'R', 'R'},
    .addr = FLASH_ERROR_LOG_ADDR,
    .sectors = FLASH_ERROR_LOG_SIZE / FLASH_SECTOR_BYTES,
};

static void take_record(void *ctx, const uint8_t *data)
{
    const struct error_record record = {
        .count = get_le64(data + ERROR_COUNT),
        .lba = get_le64(data + ERROR_LBA),
        .time_ms = get_le64(data + ERROR_TIME),
        .nsid = get_le32(data + ERROR_NSID),
        .sqid = get_le16(data + ERROR_SQID),
        .cid = get_le16(data + ERROR_CID),
        .status = get_le16(data + ERROR_STATUS),
        .location = get_le16(data + ERROR_LOCATION),
        .trtype = data[ERROR_TRTYPE],
        .vendor_log = data[ERROR_VENDOR_LOG],
        .has_time = data[ERROR_HAS_TIME] != 0,
        .owner = get_le32(data + ERROR_OWNER),
    };

    error_records_add(ctx, &record);
}

void store_read_errors(const struct flash *flash, struct records_place *place,
                       struct error_records *errors)
{
    *errors = (struct error_records){.count = 0};
    records_read(flash, &area, place, STORE_ERROR_SECTORS, take_record, errors);
}

bool store_write_error(const struct flash *flash, struct records_place *place,
                       const struct error_record *record)
{
    uint8_t data[RECORD_DATA_LEN] = {0};

    put_le64(data + ERROR_COUNT, record->count);
    put_le64(data + ERROR_LBA, record->lba);
    put_le64(data + ERROR_TIME, record->time_ms);
    put_le32(data + ERROR_NSID, record->nsid);
    put_le16(data + ERROR_SQID, record->sqid);
    put_le16(data + ERROR_CID, record->cid);
    put_le16(data + ERROR_STATUS, record->status);
    put_le16(data + ERROR_LOCATION, record->location);
    data[ERROR_TRTYPE] = record->trtype;
    data[ERROR_VENDOR_LOG] = record->vendor_log;
    data[ERROR_HAS_TIME] = record->has_time;
    put_le32(data + ERROR_OWNER, record->owner);
    return records_write(flash, &area, place, data);
}
