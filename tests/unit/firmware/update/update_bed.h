/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A flash with two image slots, the updater, and the boot ROM's choice.
 */
#ifndef ESSD_TEST_UPDATE_BED_H
#define ESSD_TEST_UPDATE_BED_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "firmware/boot/boot_slots.h"
#include "firmware/flash_ram/flash_ram.h"
#include "firmware/store/flash_layout.h"
#include "firmware/update/updater.h"

enum {
    BED_IMAGE_BYTES = 9000,
    BED_FILE_BYTES = 4 * 4096, /* header sector and image, in whole sectors */
    BED_DRAM_BYTES = 0x10000,
    BED_STEPS_MAX = 1000,
};

struct update_bed {
    struct flash_ram ram;
    struct log log;
    char text[16384]; /* what was logged */
    size_t text_len;
    struct updater updater;
    uint8_t dram[BED_DRAM_BYTES];
    uint8_t *file; /* the downloaded image */
    const uint8_t *key;
    struct boot_slots slots; /* of the last start */
    uint8_t running;         /* 0: nothing starts */
    bool is_unplanned;       /* the next restart is by a watchdog */
    const uint8_t *cleared;  /* where lost words were cleared last */
    size_t cleared_bytes;
    bool was_taken; /* the last commit was not refused at once */
    bool is_done;   /* the commit has ended, with `result` */
    enum nvmf_firmware_result result;
    uint8_t done_slot;
    uint64_t now_us;
    uint64_t power_on_hours;
    uint32_t host; /* who commits */
};

/* A copy of the parts of the flash that updates write. */
struct bed_copy {
    uint8_t slot[SLOT_COUNT][BED_FILE_BYTES];
    uint8_t record[FLASH_SLOT_RECORD_COPIES * FLASH_SECTOR_BYTES];
    uint8_t mirror[FLASH_SLOT_RECORD_COPIES * FLASH_SECTOR_BYTES];
};

void bed_keep(const struct update_bed *bed, struct bed_copy *copy);
void bed_restore(struct update_bed *bed, const struct bed_copy *copy);

/* Fill the slots with the images "old-a" and "old-b", of which A is newer, and
 * start the drive. */
void bed_begin(struct update_bed *bed);
void bed_end(struct update_bed *bed);

/* Restart the drive: the boot ROM chooses an image, and the updater starts. */
void bed_restart(struct update_bed *bed);

/* Make the file of an image whose bytes depend on its version. */
void bed_make_file(struct update_bed *bed, const char *version);
void bed_make_image(const char *version, uint8_t *image);

/* Begin a commit of the file. */
void bed_commit(struct update_bed *bed, uint8_t slot, bool stores,
                bool activates);

/* Call the updater's step, each time when it wants to be called, until the
 * commit has ended. */
void bed_run(struct update_bed *bed);

/* Commit, and check the result. */
void bed_expect_commit(struct update_bed *bed, uint8_t slot, bool stores,
                       bool activates, enum nvmf_firmware_result result);

/* Let the running image run for so long. */
void bed_pass(struct update_bed *bed, uint64_t us);

/* The version that the boot ROM has loaded, whose bytes are checked. */
const char *bed_version(struct update_bed *bed);

/* Change a word of the file's header, and make its CRC right again. */
void bed_put_header(struct update_bed *bed, size_t at, uint32_t value);

bool bed_has_logged(const struct update_bed *bed, const char *text);

#endif
