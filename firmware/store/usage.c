/* SPDX-License-Identifier: BSD-2-Clause */
#include "firmware/store/usage.h"

#include "firmware/store/flash_layout.h"
#include "lib/bytes.h"

enum { /* byte offsets in a record */
       USAGE_ON_MINUTES = 0,
       USAGE_UNSAFE = 4,
       USAGE_IN_USE = 8, /* 3 reserved bytes follow */
       USAGE_MEDIA_ERRORS = 12,
       USAGE_ERROR_ENTRIES = 16,
       USAGE_READ_BLOCKS = 24,
       USAGE_WRITTEN_BLOCKS = 32,
       USAGE_READS = 40,
       USAGE_WRITES = 48,
       USAGE_LBA_GENERATION = 56, /* 0 in records of before there was one */
};

static const struct records_area area = {
    .magic = {'E', 'S', 'S', 'D', '-', 'U', 'S', 'E'},
    .addr = FLASH_USAGE_A_ADDR,
    .sectors = 2,
};
_Static_assert(FLASH_USAGE_B_ADDR == FLASH_USAGE_A_ADDR + FLASH_SECTOR_BYTES,
               "sector B follows sector A directly");

static void take_record(void *ctx, const uint8_t *data)
{
    struct usage *usage = ctx;

    *usage = (struct usage){
        .on_minutes = get_le32(data + USAGE_ON_MINUTES),
        .unsafe_shutdowns = get_le32(data + USAGE_UNSAFE),
        .is_in_use = data[USAGE_IN_USE] != 0,
        .read_blocks_512 = get_le64(data + USAGE_READ_BLOCKS),
        .written_blocks_512 = get_le64(data + USAGE_WRITTEN_BLOCKS),
        .host_reads = get_le64(data + USAGE_READS),
        .host_writes = get_le64(data + USAGE_WRITES),
        .media_errors = get_le32(data + USAGE_MEDIA_ERRORS),
        .error_log_entries = get_le32(data + USAGE_ERROR_ENTRIES),
        .lba_generation = get_le32(data + USAGE_LBA_GENERATION),
    };
}

void store_read_usage(const struct flash *flash, struct records_place *place,
                      struct usage *usage)
{
    *usage = (struct usage){0};
    /* Each record overwrites the one before: the last intact one stays. */
    records_read(flash, &area, place, 2, take_record, usage);
}

bool store_write_usage(const struct flash *flash, struct records_place *place,
                       const struct usage *usage)
{
    uint8_t data[RECORD_DATA_LEN] = {0};

    put_le32(data + USAGE_ON_MINUTES, usage->on_minutes);
    put_le32(data + USAGE_UNSAFE, usage->unsafe_shutdowns);
    data[USAGE_IN_USE] = usage->is_in_use;
    put_le64(data + USAGE_READ_BLOCKS, usage->read_blocks_512);
    put_le64(data + USAGE_WRITTEN_BLOCKS, usage->written_blocks_512);
    put_le64(data + USAGE_READS, usage->host_reads);
    put_le64(data + USAGE_WRITES, usage->host_writes);
    put_le32(data + USAGE_MEDIA_ERRORS, usage->media_errors);
    put_le32(data + USAGE_ERROR_ENTRIES, usage->error_log_entries);
    put_le32(data + USAGE_LBA_GENERATION, usage->lba_generation);
    return records_write(flash, &area, place, data);
}
