/* SPDX-License-Identifier: BSD-2-Clause */
#include "firmware/store/records.h"

#include "lib/bytes.h"
#include "lib/crc32.h"

#include <string.h>

enum { /* byte offsets in a sector and in its header; little-endian */
       HEADER_MAGIC = 0,    /* 8 bytes */
       HEADER_SEQUENCE = 8, /* from 1: number n is in the ring's sector (n - 1)
                             * modulo their count */
       HEADER_CRC = 12,     /* of the 12 bytes before */
       HEADER_LEN = 16,
       RECORDS_AT = 64,
       RECORD_CRC = RECORD_DATA_LEN,
       RECORDS = (FLASH_SECTOR_BYTES - RECORDS_AT) / RECORD_LEN,
};
_Static_assert(RECORD_CRC + 4 == RECORD_LEN, "the CRC ends a record");
_Static_assert((int)RECORDS == (int)RECORDS_IN_SECTOR, "a sector is full");

static uint32_t sector_of(const struct records_area *area, uint32_t sequence)
{
    return area->addr + (sequence - 1) % area->sectors * FLASH_SECTOR_BYTES;
}

static uint32_t record_addr(const struct records_area *area, uint32_t sequence,
                            uint32_t record)
{
    return sector_of(area, sequence) + RECORDS_AT + record * RECORD_LEN;
}

/*
 * @return the sequence of the sector at `addr`; 0 when it has no valid header
 */
static uint32_t read_header(const struct flash *flash,
                            const struct records_area *area, uint32_t addr)
{
    uint8_t header[HEADER_LEN];
    uint32_t sequence;

    flash_read(flash, addr, header, sizeof(header));
    sequence = get_le32(header + HEADER_SEQUENCE);
    if (memcmp(header + HEADER_MAGIC, area->magic, sizeof(area->magic)) != 0 ||
        crc32_update(0, header, HEADER_CRC) != get_le32(header + HEADER_CRC) ||
        sequence == 0 || sector_of(area, sequence) != addr) {
        return 0;
    }
    return sequence;
}

static void emit_header(const struct records_area *area, uint32_t sequence,
                        uint8_t header[HEADER_LEN])
{
    memcpy(header + HEADER_MAGIC, area->magic, sizeof(area->magic));
    put_le32(header + HEADER_SEQUENCE, sequence);
    put_le32(header + HEADER_CRC, crc32_update(0, header, HEADER_CRC));
}

/*
 * Whether a sector was begun with this sequence.  One flipped bit in its header
 * does not hide its records, which the next write would erase.  The header of
 * any other sequence has more other bits.
 */
static bool has_sequence(const struct flash *flash,
                         const struct records_area *area, uint32_t sequence)
{
    uint8_t header[HEADER_LEN], wanted[HEADER_LEN];
    unsigned int wrong_bits = 0;

    flash_read(flash, sector_of(area, sequence), header, sizeof(header));
    emit_header(area, sequence, wanted);
    for (size_t i = 0; i < sizeof(header); i++) {
        for (uint8_t bits = header[i] ^ wanted[i]; bits != 0;
             bits &= (uint8_t)(bits - 1)) {
            wrong_bits++;
        }
    }
    return wrong_bits <= 1;
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

/*
 * Pass the intact records of a sector to `each`.
 * @return the number of record places in use
 */
static uint32_t read_sector(const struct flash *flash,
                            const struct records_area *area, uint32_t sequence,
                            void (*each)(void *ctx, const uint8_t *data),
                            void *ctx)
{
    uint32_t used = 0;

    for (uint32_t i = 0; i < RECORDS; i++) {
        uint8_t record[RECORD_LEN];

        flash_read(flash, record_addr(area, sequence, i), record,
                   sizeof(record));
        if (is_blank(record)) {
            continue; /* do not stop here: a later place may hold a record */
        }
        used = i + 1;
        if (crc32_update(0, record, RECORD_CRC) ==
            get_le32(record + RECORD_CRC)) {
            each(ctx, record);
        }
    }
    return used;
}

void records_read(const struct flash *flash, const struct records_area *area,
                  struct records_place *place, uint32_t sectors,
                  void (*each)(void *ctx, const uint8_t *data), void *ctx)
{
    uint32_t newest = 0;

    for (uint32_t i = 0; i < area->sectors; i++) {
        uint32_t addr = area->addr + i * FLASH_SECTOR_BYTES;
        uint32_t sequence = read_header(flash, area, addr);

        newest = MAX(newest, sequence);
    }
    newest += has_sequence(flash, area, newest + 1);
    *place = (struct records_place){.sequence = newest};
    if (newest == 0) {
        return;
    }
    for (uint32_t back = MIN(sectors, newest) - 1; back > 0; back--) {
        uint32_t sequence = newest - back;

        if (has_sequence(flash, area, sequence)) {
            (void)read_sector(flash, area, sequence, each, ctx);
        }
    }
    place->used = read_sector(flash, area, newest, each, ctx);
}

static bool begin_sector(const struct flash *flash,
                         const struct records_area *area, uint32_t sequence)
{
    uint32_t addr = sector_of(area, sequence);
    uint8_t header[HEADER_LEN];

    emit_header(area, sequence, header);
    return flash_erase_sector(flash, addr) &&
           flash_program(flash, addr, header, sizeof(header));
}

bool records_write(const struct flash *flash, const struct records_area *area,
                   struct records_place *place,
                   const uint8_t data[RECORD_DATA_LEN])
{
    uint8_t record[RECORD_LEN];

    if (place->sequence == 0 || place->used == RECORDS) {
        if (!begin_sector(flash, area, place->sequence + 1)) {
            return false;
        }
        place->sequence++;
        place->used = 0;
    }
    memcpy(record, data, RECORD_DATA_LEN);
    put_le32(record + RECORD_CRC, crc32_update(0, record, RECORD_CRC));
    return flash_program(flash,
                         record_addr(area, place->sequence, place->used++),
                         record, sizeof(record));
}
