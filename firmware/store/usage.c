/* SPDX-License-Identifier: BSD-2-Clause */
#include "firmware/store/usage.h"

#include "firmware/store/flash_layout.h"
#include "lib/bytes.h"

enum { /* byte offsets in a record of what hosts do; 4 bytes each, from
        * USAGE_READ_BLOCKS to USAGE_WRITES 8 */
       USAGE_ON_MINUTES = 0,
       USAGE_UNSAFE = 4,
       USAGE_IN_USE = 8, /* 1 byte */
       USAGE_KIND = 9,   /* 1 byte; 2 reserved bytes follow */
       USAGE_MEDIA_ERRORS = 12,
       USAGE_ERROR_ENTRIES = 16,
       USAGE_IN_USE_START = 20,
       USAGE_READ_BLOCKS = 24,
       USAGE_WRITTEN_BLOCKS = 32,
       USAGE_READS = 40,
       USAGE_WRITES = 48,
       USAGE_LBA_GENERATION = 56, /* 0 in records of before there was one */
};

enum usage_kind { KIND_HOSTS, KIND_FLASH }; /* of a record */

enum { /* byte offsets in a record of the flash; the first two fields have 4
        * bytes each, those without another comment have 8.  What comes before
        * FLASH_PROGRAMMED is 0 in older records. */
       FLASH_TRANSFER_ERRORS = 0,
       FLASH_TRANSFERS_CORRECTED = 4,
       FLASH_ADDED_HIGH = 8, /* 1 byte; byte 9 is the record's kind */
       FLASH_ADDED_LOW = 10, /* 2 bytes */
       FLASH_PROGRAMMED = 12,
       FLASH_READ = 20,
       FLASH_ERASED = 28,
       FLASH_SOFT = 36,
       FLASH_REBUILT = 44,
       FLASH_UNREADABLE = 52,
};
_Static_assert(FLASH_UNREADABLE + 8 <= (int)RECORD_DATA_LEN, "a record");

static const struct records_area area = {
    .magic = {'E', 'S', 'S', 'D', '-', 'U', 'S', 'E'},
    .addr = FLASH_USAGE_A_ADDR,
    .sectors = 2,
};
_Static_assert(FLASH_USAGE_B_ADDR == FLASH_USAGE_A_ADDR + FLASH_SECTOR_BYTES,
               "sector B follows sector A directly");

static void take_flash_record(struct usage_flash *flash, const uint8_t *data)
{
    *flash = (struct usage_flash){
        .programmed_units = get_le64(data + FLASH_PROGRAMMED),
        .read_units = get_le64(data + FLASH_READ),
        .erased_blocks = get_le64(data + FLASH_ERASED),
        .soft_reads = get_le64(data + FLASH_SOFT),
        .rebuilt_units = get_le64(data + FLASH_REBUILT),
        .unreadable_units = get_le64(data + FLASH_UNREADABLE),
        .transfer_errors = get_le32(data + FLASH_TRANSFER_ERRORS),
        .transfers_corrected = get_le32(data + FLASH_TRANSFERS_CORRECTED),
        .added_erasures = (uint32_t)data[FLASH_ADDED_HIGH] << 16 |
                          get_le16(data + FLASH_ADDED_LOW),
    };
}

static void take_record(void *ctx, const uint8_t *data)
{
    struct usage *usage = ctx;
    struct usage_flash flash = usage->flash;

    if (data[USAGE_KIND] == KIND_FLASH) {
        take_flash_record(&usage->flash, data);
        return;
    }
    *usage = (struct usage){
        .on_minutes = get_le32(data + USAGE_ON_MINUTES),
        .unsafe_shutdowns = get_le32(data + USAGE_UNSAFE),
        .is_in_use = data[USAGE_IN_USE] != 0,
        .in_use_start = get_le32(data + USAGE_IN_USE_START),
        .read_blocks_512 = get_le64(data + USAGE_READ_BLOCKS),
        .written_blocks_512 = get_le64(data + USAGE_WRITTEN_BLOCKS),
        .host_reads = get_le64(data + USAGE_READS),
        .host_writes = get_le64(data + USAGE_WRITES),
        .media_errors = get_le32(data + USAGE_MEDIA_ERRORS),
        .error_log_entries = get_le32(data + USAGE_ERROR_ENTRIES),
        .lba_generation = get_le32(data + USAGE_LBA_GENERATION),
        .flash = flash,
    };
}

void store_read_usage(const struct flash *flash, struct records_place *place,
                      struct usage *usage)
{
    *usage = (struct usage){0};
    /* Each record overwrites the one before of its kind: the last intact one
     * stays. */
    records_read(flash, &area, place, 2, take_record, usage);
}

static bool write_flash_record(const struct flash *flash,
                               struct records_place *place,
                               const struct usage_flash *use)
{
    uint8_t data[RECORD_DATA_LEN] = {[USAGE_KIND] = KIND_FLASH};

    put_le64(data + FLASH_PROGRAMMED, use->programmed_units);
    put_le64(data + FLASH_READ, use->read_units);
    put_le64(data + FLASH_ERASED, use->erased_blocks);
    put_le64(data + FLASH_SOFT, use->soft_reads);
    put_le64(data + FLASH_REBUILT, use->rebuilt_units);
    put_le64(data + FLASH_UNREADABLE, use->unreadable_units);
    put_le32(data + FLASH_TRANSFER_ERRORS, use->transfer_errors);
    put_le32(data + FLASH_TRANSFERS_CORRECTED, use->transfers_corrected);
    data[FLASH_ADDED_HIGH] = (uint8_t)(use->added_erasures >> 16);
    put_le16(data + FLASH_ADDED_LOW, (uint16_t)use->added_erasures);
    return records_write(flash, &area, place, data);
}

bool store_write_usage(const struct flash *flash, struct records_place *place,
                       const struct usage *usage)
{
    uint8_t data[RECORD_DATA_LEN] = {0};

    bool has_flash =
        usage->flash.read_units != 0 || usage->flash.added_erasures != 0;

    if (has_flash && !write_flash_record(flash, place, &usage->flash)) {
        return false;
    }
    put_le32(data + USAGE_ON_MINUTES, usage->on_minutes);
    put_le32(data + USAGE_UNSAFE, usage->unsafe_shutdowns);
    data[USAGE_IN_USE] = usage->is_in_use;
    put_le32(data + USAGE_IN_USE_START, usage->in_use_start);
    put_le64(data + USAGE_READ_BLOCKS, usage->read_blocks_512);
    put_le64(data + USAGE_WRITTEN_BLOCKS, usage->written_blocks_512);
    put_le64(data + USAGE_READS, usage->host_reads);
    put_le64(data + USAGE_WRITES, usage->host_writes);
    put_le32(data + USAGE_MEDIA_ERRORS, usage->media_errors);
    put_le32(data + USAGE_ERROR_ENTRIES, usage->error_log_entries);
    put_le32(data + USAGE_LBA_GENERATION, usage->lba_generation);
    return records_write(flash, &area, place, data);
}
