/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The boot counter.  A sector holds a header, with the count at which the
 * sector began, and one word for each boot; counting a boot clears the next
 * word.  When a sector is full, the other one is erased and begun.  The full
 * sector stays valid until then, so that a power cut at any point loses no
 * count.
 *
 * The other sector may be the newer one, with a damaged header.  Then a third
 * sector keeps the count in a header of its own, before the words are erased.
 */
#include "firmware/store/store.h"

#include "firmware/store/flash_layout.h"
#include "lib/bytes.h"
#include "lib/crc32.h"

#include <string.h>

enum {                  /* byte offsets; little-endian */
       COUNT_MAGIC = 0, /* 8 bytes */
       COUNT_BASE = 8,  /* one less than the number of the first word's boot */
       COUNT_CRC = 12,  /* of the 12 bytes before */
       COUNT_WORDS_AT = 16,
       COUNT_WORDS = (FLASH_SECTOR_BYTES - COUNT_WORDS_AT) / 4,
};

#define UNUSED 0xffffffffu

static const uint8_t magic[8] = {'E', 'S', 'S', 'D', '-', 'C', 'N', 'T'};

static const uint32_t sector_addr[2] = {FLASH_BOOT_COUNT_A_ADDR,
                                        FLASH_BOOT_COUNT_B_ADDR};

struct sector {
    bool is_valid;
    uint32_t base; /* the generation before the first word of this sector */
    uint32_t used; /* words that are no longer UNUSED */
};

/*
 * Read a sector, also one whose header is damaged.  The last used word gives
 * the count; a word torn by a power cut is used too.
 */
static struct sector read_sector(const struct flash *flash, uint32_t addr)
{
    struct sector sector = {0};
    uint8_t buf[256];

    flash_read(flash, addr, buf, COUNT_WORDS_AT);
    if (memcmp(buf + COUNT_MAGIC, magic, sizeof(magic)) == 0 &&
        crc32_update(0, buf, COUNT_CRC) == get_le32(buf + COUNT_CRC)) {
        sector.is_valid = true;
        sector.base = get_le32(buf + COUNT_BASE);
    }
    for (uint32_t at = 0; at < COUNT_WORDS; at += sizeof(buf) / 4) {
        uint32_t part = MIN((uint32_t)sizeof(buf) / 4, COUNT_WORDS - at);
        uint32_t end = 0;

        flash_read(flash, addr + COUNT_WORDS_AT + 4 * at, buf, 4 * part);
        for (uint32_t i = 0; i < part; i++) {
            if (get_le32(buf + 4 * i) != UNUSED) {
                end = i + 1;
            }
        }
        if (end > 0) {
            sector.used = at + end;
        }
        if (end < part) {
            break;
        }
    }
    return sector;
}

static bool begin_sector(const struct flash *flash, uint32_t addr,
                         uint32_t base)
{
    uint8_t header[COUNT_WORDS_AT];

    memcpy(header + COUNT_MAGIC, magic, sizeof(magic));
    put_le32(header + COUNT_BASE, base);
    put_le32(header + COUNT_CRC, crc32_update(0, header, COUNT_CRC));
    return flash_erase_sector(flash, addr) &&
           flash_program(flash, addr, header, sizeof(header));
}

static bool use_word(const struct flash *flash, uint32_t addr, uint32_t word)
{
    static const uint8_t zero[4] = {0};

    return flash_program(flash, addr + COUNT_WORDS_AT + 4 * word, zero,
                         sizeof(zero));
}

/*
 * A sector is full, and the other one has no intact header.  It may be the
 * newer one: find the count that no boot had yet.
 */
static uint32_t count_beyond(const struct flash *flash, uint32_t full,
                             const struct sector *other)
{
    struct sector kept = read_sector(flash, FLASH_BOOT_COUNT_KEPT_ADDR);

    return MAX(full + other->used, kept.is_valid ? kept.base : 0);
}

/* Keep a count, unless the third sector has it.  A power cut while the words of
 * a sector are erased does not lose it then. */
static bool keep_count(const struct flash *flash, uint32_t base)
{
    struct sector kept = read_sector(flash, FLASH_BOOT_COUNT_KEPT_ADDR);

    return (kept.is_valid && kept.base == base) ||
           begin_sector(flash, FLASH_BOOT_COUNT_KEPT_ADDR, base);
}

/* Go on in the other sector. @param base  the count of the full one; set to the
 * count at which the other one begins */
static bool change_sector(const struct flash *flash, uint32_t addr,
                          const struct sector *other, uint32_t *base)
{
    if (!other->is_valid) {
        *base = count_beyond(flash, *base, other);
        if (other->used != 0 && !keep_count(flash, *base)) {
            return false;
        }
    }
    return begin_sector(flash, addr, *base);
}

bool store_count_boot(const struct flash *flash, uint32_t fresh,
                      uint32_t *generation)
{
    struct sector sector[2];
    unsigned int now;
    uint32_t base;

    *generation = fresh;
    for (unsigned int i = 0; i < 2; i++) {
        sector[i] = read_sector(flash, sector_addr[i]);
    }
    if (!sector[0].is_valid && !sector[1].is_valid) {
        if (!begin_sector(flash, sector_addr[0], fresh)) {
            return false;
        }
        sector[0] = (struct sector){.is_valid = true, .base = fresh};
    }
    now = sector[1].is_valid &&
          (!sector[0].is_valid || sector[1].base > sector[0].base);
    base = sector[now].base + sector[now].used;
    if (sector[now].used == COUNT_WORDS) {
        now = 1 - now;
        if (!change_sector(flash, sector_addr[now], &sector[now], &base)) {
            return false;
        }
        sector[now] = (struct sector){.is_valid = true};
    }
    if (!use_word(flash, sector_addr[now], sector[now].used)) {
        return false;
    }
    *generation = base + 1;
    return true;
}
