/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The boot counter.  A sector holds a header, with the count at which the
 * sector began, and one word for each boot; counting a boot clears the next
 * word.  When a sector is full, the other one is erased and begun.  The full
 * sector stays valid until then, so that a power cut at any point loses no
 * count.
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

bool store_count_boot(const struct flash *flash, uint32_t fresh,
                      uint32_t *generation)
{
    struct sector sector[2];
    unsigned int now;

    for (unsigned int i = 0; i < 2; i++) {
        sector[i] = read_sector(flash, sector_addr[i]);
    }
    if (!sector[0].is_valid && !sector[1].is_valid) {
        if (!begin_sector(flash, sector_addr[0], fresh)) {
            *generation = fresh;
            return false;
        }
        sector[0] = (struct sector){.is_valid = true, .base = fresh};
    }
    now = sector[1].is_valid &&
          (!sector[0].is_valid || sector[1].base > sector[0].base);
    *generation = sector[now].base + sector[now].used + 1;
    if (sector[now].used == COUNT_WORDS) {
        unsigned int next = 1 - now;

        if (!sector[next].is_valid) {
            /* It may be the newer one, with a damaged header: its numbers are
             * not given again. */
            *generation += sector[next].used;
        }
        if (!begin_sector(flash, sector_addr[next], *generation - 1)) {
            *generation = fresh;
            return false;
        }
        now = next;
        sector[now] = (struct sector){.is_valid = true};
    }
    if (!use_word(flash, sector_addr[now], sector[now].used)) {
        *generation = fresh;
        return false;
    }
    return true;
}
