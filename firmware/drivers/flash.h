/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * SPI NOR flash: 32 MiB, 4 KiB sectors, 256-byte pages.
 *
 * The lower 16 MiB are reached with 3-byte addresses, the upper with the
 * opcodes that take 4; the part's address mode is never changed, so a reset
 * in the middle of anything leaves nothing to undo.
 */
#ifndef ESSD_DRIVERS_FLASH_H
#define ESSD_DRIVERS_FLASH_H

#include "firmware/drivers/gpio.h"
#include "firmware/drivers/spi.h"
#include "lib/util.h"

#define FLASH_SECTOR_BYTES 4096u
#define FLASH_PAGE_BYTES   256u

struct flash {
    const struct spi *spi;
    const struct gpio *gpio;
    unsigned int select_pin;
    uint32_t size_bytes;
};

/**
 * Wake the part up and ask it who it is.
 *
 * @param spi, gpio  borrowed for as long as `flash` is used
 * @return false when no part answers or its size is not SOC_FLASH_SIZE
 */
MUST_USE bool flash_init(struct flash *flash, const struct spi *spi,
                         const struct gpio *gpio, unsigned int select_pin);

/* Any range within the part. */
void flash_read(const struct flash *flash, uint32_t addr, void *buf,
                size_t len_bytes);

/**
 * Set the sector at `addr` (a multiple of FLASH_SECTOR_BYTES) to ones.
 *
 * @return false when the part stays busy for longer than it ever may
 */
MUST_USE bool flash_erase_sector(const struct flash *flash, uint32_t addr);

/**
 * Clear bits: every byte becomes what it was AND what is written.
 *
 * @return false when the part stays busy for longer than it ever may
 */
MUST_USE bool flash_program(const struct flash *flash, uint32_t addr,
                            const void *data, size_t len_bytes);

#endif
