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
enum { /* byte offsets in the header of a copy; 4 bytes each, little-endian */
       AREA_SEQUENCE = 0, /* from 1: number n is in place (n - 1) modulo their
                           * count */
       AREA_LENGTH = 4,   /* of the record */
       AREA_BODY_CRC = 8, /* of the record */
       AREA_HEADER_CRC = 20, /* of the 20 bytes before */
       AREA_MAGIC = 24,      /* 8 bytes */
};
_Static_assert(AREA_MAGIC + 8 == AREA_HEADER_LEN, "the magic ends the header");

const struct area namespace_area = {
    .magic = {'E', 'S', 'S', 'D', '-', 'N', 'S', '1'},
    .addr = FLASH_NAMESPACES_ADDR,
    .mirror_addr = FLASH_NAMESPACES_MIRROR,
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
    .mirror_addr = FLASH_SANITIZE_MIRROR,
    .copies = FLASH_SANITIZE_COPIES,
    .copy_bytes = FLASH_SECTOR_BYTES,
};

const struct area slot_record_area = {
    .magic = {'E', 'S', 'S', 'D', '-', 'F', 'W', '1'},
    .addr = FLASH_SLOT_RECORD_ADDR,
    .mirror_addr = FLASH_SLOT_RECORD_MIRROR,
    .copies = FLASH_SLOT_RECORD_COPIES,
    .copy_bytes = FLASH_SECTOR_BYTES,
};

const struct area reservation_area = {
    .magic = {'E', 'S', 'S', 'D', '-', 'R', 'S', '1'},
    .addr = FLASH_RESERVATIONS_ADDR,
    .mirror_addr = FLASH_RESERVATIONS_MIRROR,
    .copies = FLASH_RESERVATIONS_COPIES,
    .copy_bytes = FLASH_RESERVATIONS_SIZE,
};

const struct area latency_area = {
    .magic = {'E', 'S', 'S', 'D', '-', 'L', 'M', '1'},
    .addr = FLASH_LATENCY_ADDR,
    .copies = FLASH_LATENCY_COPIES,
    .copy_bytes = FLASH_SECTOR_BYTES,
};

const struct area share_area = {
    .magic = {'E', 'S', 'S', 'D', '-', 'S', 'H', '1'},
    .addr = FLASH_SHARES_ADDR,
    .copies = FLASH_SHARES_COPIES,
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
    uint32_t addr; /* of the copy */
    bool was_written;
};

enum { RINGS_MAX = 2, ERASED = 0xff };

uint32_t area_rings(const struct area *area)
{
    return area->mirror_addr != 0 ? RINGS_MAX : 1;
}

static uint32_t copy_addr(const struct area *area, uint32_t ring,
                          uint32_t sequence)
{
    return (ring == 0 ? area->addr : area->mirror_addr) +
           (sequence - 1) % area->copies * area->copy_bytes;
}

/* Whether a header was written completely.  The magic's last byte is programmed
 * last, so a header whose last byte is erased was not finished.  One flipped
 * bit in the magic does not make a header unfinished. */
static bool has_magic(const struct area *area, const uint8_t *magic)
{
    size_t equal = 0;

    for (size_t i = 0; i < sizeof(area->magic); i++) {
        equal += magic[i] == area->magic[i];
    }
    return equal >= sizeof(area->magic) - 1 &&
           magic[sizeof(area->magic) - 1] != ERASED;
}

/* Read the header at the place of a sequence number. */
static struct header read_header(const struct flash *flash,
                                 const struct area *area, uint32_t ring,
                                 uint32_t place_of)
{
    uint32_t addr = copy_addr(area, ring, place_of);
    uint8_t buf[AREA_HEADER_LEN];
    struct header header = {.addr = addr};

    flash_read(flash, addr, buf, sizeof(buf));
    header.was_written = has_magic(area, buf + AREA_MAGIC);
    if (memcmp(buf + AREA_MAGIC, area->magic, sizeof(area->magic)) != 0 ||
        crc32_update(0, buf, AREA_HEADER_CRC) !=
            get_le32(buf + AREA_HEADER_CRC)) {
        return header;
    }
    header.len = get_le32(buf + AREA_LENGTH);
    header.body_crc = get_le32(buf + AREA_BODY_CRC);
    if (header.len <= area->copy_bytes - AREA_HEADER_LEN &&
        copy_addr(area, ring, get_le32(buf + AREA_SEQUENCE)) == addr) {
        header.sequence = get_le32(buf + AREA_SEQUENCE);
    }
    return header;
}

/*
 * Find the copy of a ring with the highest sequence below `below`.
 *
 * @param written  the number of copies that were written completely is added
 */
static struct header find_newest(const struct flash *flash,
                                 const struct area *area, uint32_t ring,
                                 uint32_t below, uint32_t *written)
{
    struct header newest = {0};

    for (uint32_t i = 1; i <= area->copies; i++) {
        struct header header = read_header(flash, area, ring, i);

        *written += header.was_written;
        if (header.sequence < below && header.sequence > newest.sequence) {
            newest = header;
        }
    }
    return newest;
}

/* @return false when the record does not fit or is not intact */
static bool read_body(const struct flash *flash, const struct header *header,
                      uint8_t *buf, size_t size)
{
    if (header->len > size) {
        return false;
    }
    flash_read(flash, header->addr + AREA_HEADER_LEN, buf, header->len);
    return crc32_update(0, buf, header->len) == header->body_crc;
}

/* Whether a header was written, and cannot be read. */
static bool is_damaged(const struct header *header)
{
    return header->was_written && header->sequence == 0;
}

/* Whether a copy was written after the one with this sequence, into both rings,
 * and both have lost its header.  An unfinished write leaves one of them as it
 * was, unless older firmware has made it, which had one ring only. */
static bool has_lost_next(const struct flash *flash, const struct area *area,
                          uint32_t sequence)
{
    if (area->mirror_addr == 0) {
        return false;
    }
    for (uint32_t ring = 0; ring < RINGS_MAX; ring++) {
        struct header next = read_header(flash, area, ring, sequence + 1);

        if (next.sequence != 0 || (ring == 0 && !next.was_written)) {
            return false;
        }
    }
    return true;
}

/*
 * The sequence after which the next record is written when the newest one is
 * lost.  The places that show the loss stay until it is whole: otherwise, a
 * power cut during that write would leave nothing but older records, which
 * would count again.
 */
static uint32_t skip_lost(const struct flash *flash, const struct area *area,
                          uint32_t sequence)
{
    for (uint32_t n = 0; n < area->copies; n++) {
        bool is_lost = false;

        for (uint32_t ring = 0; ring < area_rings(area); ring++) {
            struct header next = read_header(flash, area, ring, sequence + 1);

            is_lost |= is_damaged(&next);
        }
        if (!is_lost) {
            break;
        }
        sequence++;
    }
    return sequence;
}

/* Find the newest intact copy: see area_read(). */
static enum area_result read_newest(const struct flash *flash,
                                    const struct area *area, uint8_t *buf,
                                    size_t size, size_t *len,
                                    uint32_t *sequence)
{
    uint32_t below = UINT32_MAX, written = 0;

    *sequence = 0;
    do {
        struct header found[RINGS_MAX] = {0};
        uint32_t newest = 0;

        for (uint32_t ring = 0; ring < area_rings(area); ring++) {
            found[ring] = find_newest(flash, area, ring, below, &written);
            newest = MAX(newest, found[ring].sequence);
        }
        *sequence = MAX(*sequence, newest);
        for (uint32_t ring = 0; newest != 0 && ring < area_rings(area);
             ring++) {
            if (found[ring].sequence == newest &&
                read_body(flash, &found[ring], buf, size)) {
                *len = found[ring].len;
                return newest == *sequence &&
                               !has_lost_next(flash, area, newest)
                           ? AREA_OK
                           : AREA_OLDER;
            }
        }
        below = newest;
    } while (below != 0);
    return written != 0 ? AREA_DAMAGED : AREA_EMPTY;
}

enum area_result area_read(const struct flash *flash, const struct area *area,
                           uint8_t *buf, size_t size, size_t *len,
                           uint32_t *sequence)
{
    enum area_result result =
        read_newest(flash, area, buf, size, len, sequence);

    if (area_is_lost(result)) {
        *sequence = skip_lost(flash, area, *sequence);
    }
    return result;
}

uint32_t area_newest(const struct flash *flash, const struct area *area)
{
    uint32_t written = 0;

    return find_newest(flash, area, 0, UINT32_MAX, &written).sequence;
}

bool area_read_older(const struct flash *flash, const struct area *area,
                     uint32_t below, uint8_t *buf, size_t size, size_t *len,
                     uint32_t *sequence)
{
    uint32_t written = 0;
    struct header header;

    while ((header = find_newest(flash, area, 0, below, &written)).sequence !=
           0) {
        if (read_body(flash, &header, buf, size)) {
            *len = header.len;
            *sequence = header.sequence;
            return true;
        }
        below = header.sequence;
    }
    return false;
}

uint32_t area_next_addr(const struct area *area, uint32_t ring,
                        uint32_t sequence)
{
    return copy_addr(area, ring, sequence + 1);
}

static bool erase_place(const struct flash *flash, uint32_t addr, size_t len)
{
    for (uint32_t at = 0; at < AREA_HEADER_LEN + len;
         at += FLASH_SECTOR_BYTES) {
        if (!flash_erase_sector(flash, addr + at)) {
            return false;
        }
    }
    return true;
}

static bool program_place(const struct flash *flash, const struct area *area,
                          uint32_t addr, uint32_t sequence, const uint8_t *buf,
                          size_t len)
{
    uint8_t header[AREA_HEADER_LEN] = {0};

    put_le32(header + AREA_SEQUENCE, sequence);
    put_le32(header + AREA_LENGTH, (uint32_t)len);
    put_le32(header + AREA_BODY_CRC, crc32_update(0, buf, len));
    put_le32(header + AREA_HEADER_CRC,
             crc32_update(0, header, AREA_HEADER_CRC));
    memcpy(header + AREA_MAGIC, area->magic, sizeof(area->magic));
    /* The header comes last: without it the copy does not count. */
    return flash_program(flash, addr + AREA_HEADER_LEN, buf, len) &&
           flash_program(flash, addr, header, sizeof(header));
}

void area_take_back(const struct flash *flash, const struct area *area,
                    uint32_t sequence)
{
    for (uint32_t ring = 0; ring < area_rings(area); ring++) {
        struct header header = read_header(flash, area, ring, sequence);

        if ((header.sequence == sequence || is_damaged(&header)) &&
            !flash_erase_sector(flash, header.addr)) {
            return; /* The next start finds the new record. */
        }
    }
}

/* Write a copy into each ring.  @param is_erased  the places are */
static bool write_rings(const struct flash *flash, const struct area *area,
                        uint32_t *sequence, const uint8_t *buf, size_t len,
                        bool is_erased)
{
    uint32_t next = *sequence + 1;

    for (uint32_t ring = 0; ring < area_rings(area); ring++) {
        uint32_t addr = copy_addr(area, ring, next);

        if ((!is_erased && !erase_place(flash, addr, len)) ||
            !program_place(flash, area, addr, next, buf, len)) {
            area_take_back(flash, area, next);
            return false;
        }
        *sequence = next;
    }
    return true;
}

/* Whether a place holds these bytes with this sequence number. */
static bool place_holds(const struct flash *flash, const struct area *area,
                        uint32_t ring, uint32_t sequence, const uint8_t *buf,
                        size_t len)
{
    struct header header = read_header(flash, area, ring, sequence);
    uint32_t crc = 0;
    uint8_t part[FLASH_PAGE_BYTES];

    if (header.sequence != sequence || header.len != len ||
        header.body_crc != crc32_update(0, buf, len)) {
        return false;
    }
    for (size_t at = 0; at < len; at += sizeof(part)) {
        size_t n = MIN(len - at, sizeof(part));

        flash_read(flash, header.addr + AREA_HEADER_LEN + (uint32_t)at, part,
                   n);
        crc = crc32_update(crc, part, n);
    }
    return crc == header.body_crc;
}

bool area_holds(const struct flash *flash, const struct area *area,
                uint32_t sequence, const uint8_t *buf, size_t len)
{
    for (uint32_t ring = 0; ring < area_rings(area); ring++) {
        if (!place_holds(flash, area, ring, sequence, buf, len)) {
            return false;
        }
    }
    return true;
}

/*
 * Erase the headers that show a loss, after a new record was written.  If they
 * stayed, the loss would be reported again when the ring comes round to the
 * place before them.  Until the new record is whole, they have to stay.
 */
static void forget_loss(const struct flash *flash, const struct area *area,
                        uint32_t sequence, const uint8_t *buf, size_t len)
{
    bool is_whole = false;

    for (uint32_t i = 0; i < area->copies * RINGS_MAX; i++) {
        struct header header =
            read_header(flash, area, i % RINGS_MAX, 1 + i / RINGS_MAX);

        if (!is_damaged(&header)) {
            continue;
        }
        is_whole = is_whole || area_holds(flash, area, sequence, buf, len);
        if (!is_whole || !flash_erase_sector(flash, header.addr)) {
            return; /* The next start does it, or the ring that comes round. */
        }
    }
}

/*
 * Whether headers may show a loss when a record is written after this sequence:
 * the record before it is not there, or the place after it, to which the ring
 * has come round, shows one.  So few headers are read at each write.
 */
static bool may_show_loss(const struct flash *flash, const struct area *area,
                          uint32_t sequence)
{
    struct header after = read_header(flash, area, 0, sequence + 2);

    return sequence == 0 || is_damaged(&after) ||
           (read_header(flash, area, 0, sequence).sequence != sequence &&
            read_header(flash, area, 1, sequence).sequence != sequence);
}

static bool write_record(const struct flash *flash, const struct area *area,
                         uint32_t *sequence, const uint8_t *buf, size_t len,
                         bool is_erased)
{
    uint32_t last = *sequence;

    if (!write_rings(flash, area, sequence, buf, len, is_erased)) {
        return false;
    }
    if (area->mirror_addr != 0 && may_show_loss(flash, area, last)) {
        forget_loss(flash, area, *sequence, buf, len);
    }
    return true;
}

bool area_write(const struct flash *flash, const struct area *area,
                uint32_t *sequence, const uint8_t *buf, size_t len)
{
    return write_record(flash, area, sequence, buf, len, false);
}

bool area_write_erased(const struct flash *flash, const struct area *area,
                       uint32_t *sequence, const uint8_t *buf, size_t len)
{
    return write_record(flash, area, sequence, buf, len, true);
}

enum area_repair area_repair(const struct flash *flash, const struct area *area,
                             uint32_t *sequence, const uint8_t *buf, size_t len)
{
    bool is_held[RINGS_MAX], was_written = true;

    if (area->mirror_addr == 0) {
        return AREA_REPAIR_NONE;
    }
    for (uint32_t ring = 0; ring < RINGS_MAX; ring++) {
        struct header header = read_header(flash, area, ring, *sequence);

        is_held[ring] = place_holds(flash, area, ring, *sequence, buf, len);
        /* An older copy there says that the write was not finished. */
        was_written &= header.was_written &&
                       (header.sequence == *sequence || header.sequence == 0);
    }
    if (is_held[0] && is_held[1]) {
        /* The power may have failed while the loss before it was forgotten. */
        forget_loss(flash, area, *sequence, buf, len);
        return AREA_REPAIR_NONE;
    }
    /* The next places: so the copy that is left stays until both are there. */
    if (!area_write(flash, area, sequence, buf, len)) {
        return AREA_REPAIR_FAILED;
    }
    return was_written ? AREA_REPAIR_DAMAGE : AREA_REPAIR_FINISHED;
}
