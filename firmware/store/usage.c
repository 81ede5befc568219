/* SPDX-License-Identifier: BSD-2-Clause */
#include "firmware/store/usage.h"

#include "firmware/store/flash_layout.h"
#include "lib/bytes.h"
#include "lib/crc32.h"

#include <string.h>

enum { /* byte offsets in a sector and its header; little-endian */
       HEADER_MAGIC = 0, /* 8 bytes */
       HEADER_SEQUENCE = 8,
       HEADER_CRC = 12,
       HEADER_LEN = 16,
       RECORDS_AT = 64,
};

enum { /* in a record */
       RECORD_ON_MINUTES = 0,
       RECORD_UNSAFE = 4,
       RECORD_IN_USE = 8, /* then 3 reserved bytes */
       RECORD_MEDIA_ERRORS = 12,
       RECORD_ERROR_ENTRIES = 16,
       RECORD_READ_BLOCKS = 24,
       RECORD_WRITTEN_BLOCKS = 32,
       RECORD_READS = 40,
       RECORD_WRITES = 48,
       RECORD_CRC = 60,
       RECORD_LEN = 64,
       RECORDS = (FLASH_SECTOR_BYTES - RECORDS_AT) / RECORD_LEN,
};

static const uint8_t magic[8] = {'E', 'S', 'S', 'D', '-', 'U', 'S', 'E'};

static uint32_t sector_of(uint32_t sequence)
{
    return sequence & 1 ? FLASH_USAGE_A_ADDR : FLASH_USAGE_B_ADDR;
}

static uint32_t record_addr(uint32_t sequence, uint32_t record)
{
    return sector_of(sequence) + RECORDS_AT + record * RECORD_LEN;
}

/* @return the sequence of the sector at `addr`, 0 when it is none */
static uint32_t read_header(const struct flash *flash, uint32_t addr)
{
    uint8_t header[HEADER_LEN];
    uint32_t sequence;

    flash_read(flash, addr, header, sizeof(header));
    sequence = get_le32(header + HEADER_SEQUENCE);
    if (memcmp(header + HEADER_MAGIC, magic, sizeof(magic)) != 0 ||
        crc32_update(0, header, HEADER_CRC) != get_le32(header + HEADER_CRC) ||
        sector_of(sequence) != addr) {
        return 0;
    }
    return sequence;
}

static bool is_blank(const uint8_t *record)
{
    for (size_t i = 0; i < RECORD_LEN; i++) {
        if (record[i] != 0xff) {
            return false;
        }
    }
    return true;
}

static bool parse(struct usage *usage, const uint8_t *record)
{
    if (crc32_update(0, record, RECORD_CRC) != get_le32(record + RECORD_CRC)) {
        return false;
    }
    *usage = (struct usage){
        .on_minutes = get_le32(record + RECORD_ON_MINUTES),
        .unsafe_shutdowns = get_le32(record + RECORD_UNSAFE),
        .is_in_use = record[RECORD_IN_USE] != 0,
        .read_blocks_512 = get_le64(record + RECORD_READ_BLOCKS),
        .written_blocks_512 = get_le64(record + RECORD_WRITTEN_BLOCKS),
        .host_reads = get_le64(record + RECORD_READS),
        .host_writes = get_le64(record + RECORD_WRITES),
        .media_errors = get_le32(record + RECORD_MEDIA_ERRORS),
        .error_log_entries = get_le32(record + RECORD_ERROR_ENTRIES),
    };
    return true;
}

static void emit(const struct usage *usage, uint8_t *record)
{
    memset(record, 0, RECORD_LEN);
    put_le32(record + RECORD_ON_MINUTES, usage->on_minutes);
    put_le32(record + RECORD_UNSAFE, usage->unsafe_shutdowns);
    record[RECORD_IN_USE] = usage->is_in_use;
    put_le64(record + RECORD_READ_BLOCKS, usage->read_blocks_512);
    put_le64(record + RECORD_WRITTEN_BLOCKS, usage->written_blocks_512);
    put_le64(record + RECORD_READS, usage->host_reads);
    put_le64(record + RECORD_WRITES, usage->host_writes);
    put_le32(record + RECORD_MEDIA_ERRORS, usage->media_errors);
    put_le32(record + RECORD_ERROR_ENTRIES, usage->error_log_entries);
    put_le32(record + RECORD_CRC, crc32_update(0, record, RECORD_CRC));
}

/* The sector's last good record, if it has one. @return records used */
static uint32_t read_records(const struct flash *flash, uint32_t sequence,
                             struct usage *usage, bool *is_found)
{
    uint32_t used = 0;

    for (uint32_t i = 0; i < RECORDS; i++) {
        uint8_t record[RECORD_LEN];

        flash_read(flash, record_addr(sequence, i), record, sizeof(record));
        if (is_blank(record)) {
            continue; /* one behind it may have been torn */
        }
        used = i + 1;
        *is_found |= parse(usage, record);
    }
    return used;
}

void store_read_usage(const struct flash *flash, struct usage_place *place,
                      struct usage *usage)
{
    uint32_t a = read_header(flash, FLASH_USAGE_A_ADDR);
    uint32_t b = read_header(flash, FLASH_USAGE_B_ADDR);
    uint32_t newer = MAX(a, b), older = MIN(a, b);
    bool is_found = false;

    *usage = (struct usage){0};
    *place = (struct usage_place){.sequence = newer};
    if (older != 0) { /* in case the newer one was only begun */
        (void)read_records(flash, older, usage, &is_found);
    }
    if (newer != 0) {
        place->used = read_records(flash, newer, usage, &is_found);
    }
}

static bool begin_sector(const struct flash *flash, uint32_t sequence)
{
    uint32_t addr = sector_of(sequence);
    uint8_t header[HEADER_LEN];

    memcpy(header + HEADER_MAGIC, magic, sizeof(magic));
    put_le32(header + HEADER_SEQUENCE, sequence);
    put_le32(header + HEADER_CRC, crc32_update(0, header, HEADER_CRC));
    return flash_erase_sector(flash, addr) &&
           flash_program(flash, addr, header, sizeof(header));
}

bool store_write_usage(const struct flash *flash, struct usage_place *place,
                       const struct usage *usage)
{
    uint8_t record[RECORD_LEN];

    if (place->sequence == 0 || place->used == RECORDS) {
        if (!begin_sector(flash, place->sequence + 1)) {
            return false;
        }
        place->sequence++;
        place->used = 0;
    }
    emit(usage, record);
    return flash_program(flash, record_addr(place->sequence, place->used++),
                         record, sizeof(record));
}
