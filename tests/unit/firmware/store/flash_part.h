/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A part of a flash whose power can fail after any byte: bits only change to 0,
 * and an erasure sets those of a sector.  Whoever includes this defines
 * PART_ADDR, PART_BYTES, and PART_PAGE: a write stays within so many bytes.
 */
#ifndef ESSD_TESTS_FLASH_PART_H
#define ESSD_TESTS_FLASH_PART_H

#include "firmware/drivers/flash.h"

#include <string.h>

#define NEVER SIZE_MAX

static struct flash flash;
static size_t bytes_left; /* bytes written until the power fails */
static unsigned int erasures;
static uint8_t part[PART_BYTES];

static uint8_t *part_at(uint32_t addr, size_t len_bytes)
{
    assert_true(addr - PART_ADDR + len_bytes <= sizeof(part));
    return part + (addr - PART_ADDR);
}

static bool spend_byte(void)
{
    if (bytes_left == 0) {
        return false;
    }
    bytes_left -= bytes_left != NEVER;
    return true;
}

void flash_read(const struct flash *of, uint32_t addr, void *buf,
                size_t len_bytes)
{
    assert_ptr_equal(of, &flash);
    memcpy(buf, part_at(addr, len_bytes), len_bytes);
}

bool flash_erase_sector(const struct flash *of, uint32_t addr)
{
    uint8_t *sector = part_at(addr, FLASH_SECTOR_BYTES);

    (void)of;
    assert_int_equal(addr % FLASH_SECTOR_BYTES, 0);
    erasures++;
    for (uint32_t i = 0; i < FLASH_SECTOR_BYTES; i++) {
        if (!spend_byte()) {
            return false;
        }
        sector[i] = 0xff;
    }
    return true;
}

bool flash_program(const struct flash *of, uint32_t addr, const void *data,
                   size_t len_bytes)
{
    uint8_t *to = part_at(addr, len_bytes);

    (void)of;
    assert_int_equal(addr / PART_PAGE, (addr + len_bytes - 1) / PART_PAGE);
    for (size_t i = 0; i < len_bytes; i++) {
        if (!spend_byte()) {
            return false;
        }
        to[i] &= ((const uint8_t *)data)[i];
    }
    return true;
}

static int blank_part(void **state)
{
    (void)state;
    memset(part, 0xff, sizeof(part));
    bytes_left = NEVER;
    erasures = 0;
    return 0;
}

#endif
