/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * SPI NOR flash: 32 MiB, 4 KiB sectors, 256-byte pages.
 *
 * The lower 16 MiB are addressed with 3 bytes, the upper 16 MiB with the
 * opcodes that take 4.  The driver never changes the flash's address mode, so
 * that a reset in the middle of a command leaves no mode to undo.
 */
#ifndef ESSD_DRIVERS_FLASH_H
#define ESSD_DRIVERS_FLASH_H

#include "firmware/drivers/gpio.h"
#include "firmware/drivers/spi.h"
#include "lib/patience.h"
#include "lib/util.h"

#define FLASH_SECTOR_BYTES 4096u
#define FLASH_PAGE_BYTES   256u

/* Commands that did not end in time. */
struct flash_failures {
    uint32_t count; /* of erasures and writes since the start */
    uint32_t addr;  /* in the last one of them */
};

/* An erasure that flash_start_erase() has begun.  Treat as opaque. */
struct flash_change {
    bool is_pending; /* the part was busy when the driver last asked it */
    bool has_failed; /* the part was busy for too long */
    uint32_t addr;
    struct patience patience;
};

enum flash_progress {
    FLASH_BUSY, /* The command goes on; ask again later. */
    FLASH_DONE,
    FLASH_FAILED,
};

struct flash {
    const struct spi *spi;
    const struct gpio *gpio;
    unsigned int select_pin;
    uint32_t size_bytes;
    struct flash_failures *failures; /* NULL: they are not counted */

    /* Called after each erasure and write that has ended in time, because a
     * record of many sectors takes longer than the watchdog waits.  NULL: it is
     * not called. */
    void (*ended)(void *ctx);
    void *ended_ctx;

    struct flash_change *change; /* NULL: flash_start_erase() is not called */
};

/**
 * Wake the flash up and check its ID.
 *
 * @param spi, gpio  borrowed for as long as `flash` is used
 * @return false when no flash answers or its size is not SOC_FLASH_SIZE
 */
MUST_USE bool flash_init(struct flash *flash, const struct spi *spi,
                         const struct gpio *gpio, unsigned int select_pin);

/* Read any range within the flash. */
void flash_read(const struct flash *flash, uint32_t addr, void *buf,
                size_t len_bytes);

/**
 * Set the sector at `addr` (a multiple of FLASH_SECTOR_BYTES) to ones.
 *
 * @return false when the flash stays busy for longer than its longest erasure
 */
MUST_USE bool flash_erase_sector(const struct flash *flash, uint32_t addr);

/**
 * Begin to erase a sector, and return at once.  While the part is busy, the
 * caller does other work, and calls flash_poll() from time to time.  All other
 * functions that access the flash can be called meanwhile: they first wait for
 * the end of the erasure.  A second erasure must not be begun before
 * flash_poll() has returned the result of the first one.
 */
void flash_start_erase(const struct flash *flash, uint32_t addr);

/** Whether the erasure that flash_start_erase() began last has ended. */
enum flash_progress flash_poll(const struct flash *flash);

/**
 * Clear bits: every byte becomes its old value AND the written value.
 *
 * @return false when the flash stays busy for longer than its longest command
 */
MUST_USE bool flash_program(const struct flash *flash, uint32_t addr,
                            const void *data, size_t len_bytes);

#endif
