/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The SPI flash of a native drive, in memory, with the functions of
 * firmware/drivers/flash.h.  Its power can fail after any byte.
 */
#ifndef ESSD_FLASH_RAM_FLASH_RAM_H
#define ESSD_FLASH_RAM_FLASH_RAM_H

#include "firmware/drivers/flash.h"
#include "firmware/store/image.h"

struct flash_ram {
    struct flash
        flash;         /* the first member: the functions get a pointer to it */
    uint8_t *inverted; /* the content, inverted: unused parts need no memory */
    uint64_t written;  /* bytes that were erased or programmed */
    uint64_t limit;    /* of `written`: the power fails then; or UINT64_MAX */
    uint32_t stuck_addr; /* a byte that cannot be programmed; 0: none */
    uint64_t commands;   /* number of commands that erase or program */
    /* How long the part is busy after it was told to erase; 0 by default.  The
     * bytes change at once.  A function that waits for the end calls
     * delay_us(). */
    uint32_t erase_us;
    uint64_t (*now_us)(
        void); /* hal_now_us() and hal_delay_us(), for erase_us */
    void (*delay_us)(uint32_t us);
    uint64_t busy_until_us;
    bool is_busy;    /* no function has seen the end of an erasure yet */
    bool has_failed; /* the last flash_start_erase() */
    uint32_t waits;  /* how often a function has waited for the end */
};

/** Make an erased flash. */
void flash_ram_init(struct flash_ram *ram);
void flash_ram_free(struct flash_ram *ram);

/** Whether the power has failed: nothing is written any more. */
bool flash_ram_is_off(const struct flash_ram *ram);

/** Make a header of version 2 for an image. */
struct image_header flash_ram_header(const char *version, uint32_t sequence,
                                     const uint8_t *image, uint32_t len);

/** Write an image and its header to slot 1 or 2. */
void flash_ram_set_slot(struct flash_ram *ram, uint8_t slot,
                        const struct image_header *header,
                        const uint8_t *image);

#endif
