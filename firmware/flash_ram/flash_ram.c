/* SPDX-License-Identifier: BSD-2-Clause */
#include "firmware/flash_ram/flash_ram.h"

#include <stdlib.h>
#include <string.h>

#include "firmware/signature/signature.h"
#include "firmware/store/flash_layout.h"
#include "firmware/store/slot_record.h"
#include "hw-model/regs/soc.h"
#include "lib/crc32.h"

void flash_ram_init(struct flash_ram *ram)
{
    *ram = (struct flash_ram){.limit = UINT64_MAX};
    ram->flash.size_bytes = SOC_FLASH_SIZE;
    ram->inverted = calloc(1, SOC_FLASH_SIZE);
    ASSERT(ram->inverted != NULL);
}

void flash_ram_free(struct flash_ram *ram)
{
    free(ram->inverted);
    ram->inverted = NULL;
}

bool flash_ram_is_off(const struct flash_ram *ram)
{
    return ram->written >= ram->limit;
}

/* The functions get a const struct flash, but they change the struct flash_ram
 * of which it is a member. */
static struct flash_ram *ram_of(const struct flash *flash)
{
    return (struct flash_ram *)(uintptr_t)flash;
}

static bool is_erasing(const struct flash_ram *ram)
{
    return ram->erase_us != 0 && ram->now_us() < ram->busy_until_us;
}

/* The part takes no command while it is busy. */
static void wait_for_erasure(struct flash_ram *ram)
{
    if (ram->is_busy && is_erasing(ram)) {
        ram->waits++;
        ram->delay_us((uint32_t)(ram->busy_until_us - ram->now_us()));
    }
    ram->is_busy = false;
}

void flash_read(const struct flash *flash, uint32_t addr, void *buf,
                size_t len_bytes)
{
    struct flash_ram *ram = ram_of(flash);
    uint8_t *to = buf;

    ASSERT(addr <= flash->size_bytes && len_bytes <= flash->size_bytes - addr);
    wait_for_erasure(ram);
    for (size_t i = 0; i < len_bytes; i++) {
        to[i] = (uint8_t)~ram->inverted[addr + i];
    }
}

/* @return false when the power has failed */
static bool erase_now(struct flash_ram *ram, uint32_t addr)
{
    ASSERT(addr % FLASH_SECTOR_BYTES == 0 && addr < ram->flash.size_bytes);
    wait_for_erasure(ram);
    ram->commands++;
    for (uint32_t i = 0; i < FLASH_SECTOR_BYTES; i++) {
        if (flash_ram_is_off(ram)) {
            return false;
        }
        ram->inverted[addr + i] = 0;
        ram->written++;
    }
    return true;
}

bool flash_erase_sector(const struct flash *flash, uint32_t addr)
{
    struct flash_ram *ram = ram_of(flash);
    bool is_erased = erase_now(ram, addr);

    if (ram->erase_us != 0) {
        ram->delay_us(ram->erase_us);
    }
    return is_erased;
}

void flash_start_erase(const struct flash *flash, uint32_t addr)
{
    struct flash_ram *ram = ram_of(flash);

    ram->has_failed = !erase_now(ram, addr);
    ram->is_busy = true;
    ram->busy_until_us = ram->erase_us != 0 ? ram->now_us() + ram->erase_us : 0;
}

enum flash_progress flash_poll(const struct flash *flash)
{
    struct flash_ram *ram = ram_of(flash);

    if (ram->is_busy && is_erasing(ram)) {
        return FLASH_BUSY;
    }
    ram->is_busy = false;
    return ram->has_failed ? FLASH_FAILED : FLASH_DONE;
}

bool flash_program(const struct flash *flash, uint32_t addr, const void *data,
                   size_t len_bytes)
{
    struct flash_ram *ram = ram_of(flash);
    const uint8_t *from = data;

    ASSERT(addr <= flash->size_bytes && len_bytes <= flash->size_bytes - addr);
    wait_for_erasure(ram);
    ram->commands++;
    for (size_t i = 0; i < len_bytes; i++) {
        if (flash_ram_is_off(ram)) {
            return false;
        }
        if (ram->stuck_addr == 0 || addr + i != ram->stuck_addr) {
            ram->inverted[addr + i] |= (uint8_t)~from[i];
        }
        ram->written++;
    }
    return true;
}

struct image_header flash_ram_header(const char *version, uint32_t sequence,
                                     const uint8_t *image, uint32_t len)
{
    struct image_header header = {
        .format = 2,
        .sequence = sequence,
        .load_addr = SOC_DRAM_BASE,
        .entry = SOC_DRAM_BASE,
        .len_bytes = len,
        .image_crc = crc32_update(0, image, len),
        .board = IMAGE_BOARD,
    };
    struct image_digest digest;

    ASSERT(strlen(version) <= IMAGE_VERSION_LEN);
    memcpy(header.version, version, strlen(version));
    image_digest_begin(&digest);
    image_digest_add(&digest, image, len);
    image_digest_end(&digest, header.hash);
    return header;
}

void flash_ram_set_slot(struct flash_ram *ram, uint8_t slot,
                        const struct image_header *header, const uint8_t *image)
{
    uint8_t buf[IMAGE_HEADER_LEN];
    uint32_t addr = slot_addr(slot);

    for (uint32_t at = 0; at < FLASH_SLOT_IMAGE_OFFSET + header->len_bytes;
         at += FLASH_SECTOR_BYTES) {
        ASSERT(flash_erase_sector(&ram->flash, addr + at));
    }
    image_header_emit(header, buf);
    ASSERT(flash_program(&ram->flash, addr + FLASH_SLOT_IMAGE_OFFSET, image,
                         header->len_bytes));
    ASSERT(flash_program(&ram->flash, addr, buf, sizeof(buf)));
}
