/* SPDX-License-Identifier: BSD-2-Clause */
#include "firmware/store/area.h"

#include <string.h>

#include "firmware/store/flash_layout.h"
#include "lib/bytes.h"
#include "lib/crc32.h"

/*
 * Byte offsets in the header; little-endian.  The magic number is its last
 * field: a header that has it was written completely.
 */
enum {
    AREA_SEQUENCE = 0,
    AREA_LENGTH = 4,
    AREA_BODY_CRC = 8,
    AREA_HEADER_CRC = 20, /* of the 20 bytes before */
    AREA_MAGIC = 24,
};
_Static_assert(AREA_MAGIC + 8 == AREA_HEADER_LEN, "the magic ends the header");

const struct area namespace_area = {
    .magic = {'E', 'S', 'S', 'D', '-', 'N', 'S', '1'},
    .addr = FLASH_NAMESPACES_ADDR,
    .copies = FLASH_NAMESPACES_COPIES,
    .copy_bytes = FLASH_NAMESPACES_SIZE,
};

const struct area self_test_area = {
    .magic = {'E', 'S', 'S', 'D', '-', 'S', 'T', '1'},
    .addr = FLASH_SELF_TEST_ADDR,
    .copies = FLASH_SELF_TEST_COPIES,
    .copy_bytes = FLASH_SECTOR_BYTES,
};

const struct area sanitize_area = {
    .magic = {'E', 'S', 'S', 'D', '-', 'S', 'A', '1'},
    .addr = FLASH_SANITIZE_ADDR,
    .copies = FLASH_SANITIZE_COPIES,
    .copy_bytes = FLASH_SECTOR_BYTES,
};

const struct area slot_record_area = {
    .magic = {'E', 'S', 'S', 'D', '-', 'F', 'W', '1'},
    .addr = FLASH_SLOT_RECORD_ADDR,
    .copies = FLASH_SLOT_RECORD_COPIES,
    .copy_bytes = FLASH_SECTOR_BYTES,
};

const struct area reservation_area = {
    .magic = {'E', 'S', 'S', 'D', '-', 'R', 'S', '1'},
    .addr = FLASH_RESERVATIONS_ADDR,
    .copies = FLASH_RESERVATIONS_COPIES,
    .copy_bytes = FLASH_RESERVATIONS_SIZE,
};

const struct area latency_area = {
    .magic = {'E', 'S', 'S', 'D', '-', 'L', 'M', '1'},
    .addr = FLASH_LATENCY_ADDR,
    .copies = FLASH_LATENCY_COPIES,
    .copy_bytes = FLASH_SECTOR_BYTES,
};

const struct area telemetry_area = {
    .magic = {'E', 'S', 'S', 'D', '-', 'T', 'L', '1'},
    .addr = FLASH_TELEMETRY_ADDR,
    .copies = FLASH_TELEMETRY_COPIES,
    .copy_bytes = FLASH_TELEMETRY_SIZE,
};

const struct area crash_area = {
    .magic = {'E', 'S', 'S', 'D', '-', 'C', 'D', '1'},
    .addr = FLASH_CRASH_ADDR,
    .copies = FLASH_CRASH_COPIES,
    .copy_bytes = FLASH_CRASH_SIZE,
};

struct header {
    uint32_t sequence; /* 0: there is no intact header */
    uint32_t len;
    uint32_t body_crc;
    bool was_written;
};

static uint32_t copy_addr(const struct area *area, uint32_t sequence)
{
    return area->addr + (sequence - 1) % area->copies * area->copy_bytes;
}

static struct header read_header(const struct flash *flash,
                                 const struct area *area, uint32_t copy)
{
    uint32_t addr = area->addr + copy * area->copy_bytes;
    uint8_t buf[AREA_HEADER_LEN];
    struct header header = {0};

    flash_read(flash, addr, buf, sizeof(buf));
    header.was_written =
        memcmp(buf + AREA_MAGIC, area->magic, sizeof(area->magic)) == 0;
    if (!header.was_written || crc32_update(0, buf, AREA_HEADER_CRC) !=
                                   get_le32(buf + AREA_HEADER_CRC)) {
        return header;
    }
    header.len = get_le32(buf + AREA_LENGTH);
    header.body_crc = get_le32(buf + AREA_BODY_CRC);
    if (header.len <= area->copy_bytes - AREA_HEADER_LEN &&
        copy_addr(area, get_le32(buf + AREA_SEQUENCE)) == addr) {
        header.sequence = get_le32(buf + AREA_SEQUENCE);
    }
    return header;
}

/*
 * Find the copy with the highest sequence below `below`.
 *
 * @param written  set to the number of copies that were written completely
 */
static struct header find_newest(const struct flash *flash,
                                 const struct area *area, uint32_t below,
                                 uint32_t *written)
{
    struct header newest = {0};

    *written = 0;
    for (uint32_t i = 0; i < area->copies; i++) {
        struct header header = read_header(flash, area, i);

        *written += header.was_written;
        if (header.sequence < below && header.sequence > newest.sequence) {
            newest = header;
        }
    }
    return newest;
}

/* @return false when the record does not fit or is not intact */
static bool read_body(const struct flash *flash, const struct area *area,
                      const struct header *header, uint8_t *buf, size_t size)
{
    if (header->len > size) {
        return false;
    }
    flash_read(flash, copy_addr(area, header->sequence) + AREA_HEADER_LEN, buf,
               header->len);
    return crc32_update(0, buf, header->len) == header->body_crc;
}

enum area_result area_read(const struct flash *flash, const struct area *area,
                           uint8_t *buf, size_t size, size_t *len,
                           uint32_t *sequence)
{
    uint32_t below = UINT32_MAX;
    uint32_t written;
    struct header header;

    *sequence = 0;
    while ((header = find_newest(flash, area, below, &written)).sequence != 0) {
        bool is_newest = *sequence == 0;

        *sequence = MAX(*sequence, header.sequence);
        if (read_body(flash, area, &header, buf, size)) {
            *len = header.len;
            return is_newest ? AREA_OK : AREA_OLDER;
        }
        below = header.sequence;
    }
    return written != 0 ? AREA_DAMAGED : AREA_EMPTY;
}

uint32_t area_newest(const struct flash *flash, const struct area *area)
{
    uint32_t written;

    return find_newest(flash, area, UINT32_MAX, &written).sequence;
}

bool area_read_older(const struct flash *flash, const struct area *area,
                     uint32_t below, uint8_t *buf, size_t size, size_t *len,
                     uint32_t *sequence)
{
    uint32_t written;
    struct header header;

    while ((header = find_newest(flash, area, below, &written)).sequence != 0) {
        if (read_body(flash, area, &header, buf, size)) {
            *len = header.len;
            *sequence = header.sequence;
            return true;
        }
        below = header.sequence;
    }
    return false;
}

uint32_t area_next_addr(const struct area *area, uint32_t sequence)
{
    return copy_addr(area, sequence + 1);
}

bool area_write(const struct flash *flash, const struct area *area,
                uint32_t *sequence, const uint8_t *buf, size_t len)
{
    uint32_t addr = area_next_addr(area, *sequence);

    for (uint32_t at = 0; at < AREA_HEADER_LEN + len;
         at += FLASH_SECTOR_BYTES) {
        if (!flash_erase_sector(flash, addr + at)) {
            return false;
        }
    }
    return area_write_erased(flash, area, sequence, buf, len);
}

bool area_write_erased(const struct flash *flash, const struct area *area,
                       uint32_t *sequence, const uint8_t *buf, size_t len)
{
    uint32_t next = *sequence + 1;
    uint32_t addr = copy_addr(area, next);
    uint8_t header[AREA_HEADER_LEN] = {0};

    put_le32(header + AREA_SEQUENCE, next);
    put_le32(header + AREA_LENGTH, (uint32_t)len);
    put_le32(header + AREA_BODY_CRC, crc32_update(0, buf, len));
    put_le32(header + AREA_HEADER_CRC,
             crc32_update(0, header, AREA_HEADER_CRC));
    memcpy(header + AREA_MAGIC, area->magic, sizeof(area->magic));
    /* The header comes last: without it the copy does not count. */
    if (!flash_program(flash, addr + AREA_HEADER_LEN, buf, len) ||
        !flash_program(flash, addr, header, sizeof(header))) {
        return false;
    }
    *sequence = next;
    return true;
}
