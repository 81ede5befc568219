/* SPDX-License-Identifier: BSD-2-Clause */
#include "update_bed.h"

#include <stdlib.h>
#include <string.h>

#include "firmware/hal/time.h"
#include "hw-model/regs/soc.h"
#include "lib/bytes.h"
#include "lib/crc32.h"

static size_t take_text(void *ctx, const char *text, size_t len)
{
    struct update_bed *bed = ctx;

    assert_true(bed->text_len + len < sizeof(bed->text));
    memcpy(bed->text + bed->text_len, text, len);
    bed->text_len += len;
    return len;
}

static void drain_text(void *ctx)
{
    (void)ctx;
}

uint64_t hal_now_us(void)
{
    return 0;
}

static uint64_t power_on_hours(void *ctx)
{
    const struct update_bed *bed = ctx;

    return bed->power_on_hours;
}

static void commit_done(void *ctx, const struct nvmf_firmware_commit *commit,
                        enum nvmf_firmware_result result)
{
    struct update_bed *bed = ctx;

    assert_false(bed->is_done);
    bed->is_done = true;
    bed->result = result;
    bed->done_slot = commit->slot;
}

void bed_make_image(const char *version, uint8_t *image)
{
    uint32_t state = 1;

    for (size_t i = 0; version[i] != '\0'; i++) {
        state = state * 31 + (uint8_t)version[i];
    }
    for (size_t i = 0; i < BED_IMAGE_BYTES; i++) {
        state = state * 1664525 + 1013904223;
        image[i] = (uint8_t)(state >> 24);
    }
}

void bed_make_file(struct update_bed *bed, const char *version)
{
    struct image_header header;

    memset(bed->file, 0xff, BED_FILE_BYTES);
    bed_make_image(version, bed->file + 4096);
    header = flash_ram_header(version, 0, bed->file + 4096, BED_IMAGE_BYTES);
    image_header_emit(&header, bed->file);
}

static void set_slot(struct update_bed *bed, uint8_t slot, const char *version,
                     uint32_t sequence)
{
    uint8_t image[BED_IMAGE_BYTES];
    struct image_header header;

    bed_make_image(version, image);
    header = flash_ram_header(version, sequence, image, sizeof(image));
    flash_ram_set_slot(&bed->ram, slot, &header, image);
}

void bed_keep(const struct update_bed *bed, struct bed_copy *copy)
{
    const uint8_t *flash = bed->ram.inverted;

    for (uint8_t slot = 1; slot <= SLOT_COUNT; slot++) {
        memcpy(copy->slot[slot - 1], flash + slot_addr(slot), BED_FILE_BYTES);
    }
    memcpy(copy->record, flash + FLASH_SLOT_RECORD_ADDR, sizeof(copy->record));
    memcpy(copy->mirror, flash + FLASH_SLOT_RECORD_MIRROR,
           sizeof(copy->mirror));
}

void bed_restore(struct update_bed *bed, const struct bed_copy *copy)
{
    uint8_t *flash = bed->ram.inverted;

    for (uint8_t slot = 1; slot <= SLOT_COUNT; slot++) {
        memcpy(flash + slot_addr(slot), copy->slot[slot - 1], BED_FILE_BYTES);
    }
    memcpy(flash + FLASH_SLOT_RECORD_ADDR, copy->record, sizeof(copy->record));
    memcpy(flash + FLASH_SLOT_RECORD_MIRROR, copy->mirror,
           sizeof(copy->mirror));
}

void bed_begin(struct update_bed *bed)
{
    memset(bed, 0, sizeof(*bed));
    bed->file = calloc(1, NVMF_FIRMWARE_MAX);
    assert_non_null(bed->file);
    flash_ram_init(&bed->ram);
    set_slot(bed, 1, "old-a", 2);
    set_slot(bed, 2, "old-b", 1);
    bed->ram.written = 0;
    bed_restart(bed);
}

void bed_end(struct update_bed *bed)
{
    flash_ram_free(&bed->ram);
    free(bed->file);
}

/* Lost words are zero afterwards, so this has to come before the image is
 * loaded. */
static void clear_lost_words(void *ctx, const void *memory, size_t len)
{
    struct update_bed *bed = ctx;

    bed->cleared = memory;
    bed->cleared_bytes = len;
    memset(bed->dram + (bed->cleared - bed->dram), 0, len);
}

void bed_restart(struct update_bed *bed)
{
    const struct boot_config boot = {
        .flash = &bed->ram.flash,
        .dram = bed->dram,
        .dram_addr = SOC_DRAM_BASE,
        .dram_bytes = sizeof(bed->dram),
        .key = bed->key,
        .is_unplanned = bed->is_unplanned,
        .clear_lost_words = clear_lost_words,
        .clear_ctx = bed,
    };
    struct updater_config config = {
        .log = &bed->log,
        .flash = boot.flash,
        .image = bed->file,
        .dram_addr = boot.dram_addr,
        .dram_bytes = boot.dram_bytes,
        .key = bed->key,
        .is_unplanned = bed->is_unplanned,
        .power_on_hours = power_on_hours,
        .done = commit_done,
        .ctx = bed,
    };

    bed->text_len = 0;
    memset(bed->text, 0, sizeof(bed->text));
    log_init(
        &bed->log,
        (struct log_sink){.ctx = bed, .write = take_text, .drain = drain_text});
    boot_slots_read(&bed->slots, &boot);
    bed->running = boot_slots_choose(&bed->slots);
    if (bed->running == 0) {
        return;
    }
    for (unsigned int i = 0; i < SLOT_COUNT; i++) {
        config.is_bad[i] =
            bed->slots.slot[i].verdict != SYSCTL_VERDICT_UNTRIED &&
            bed->slots.slot[i].verdict != SYSCTL_VERDICT_GOOD;
    }
    config.running = bed->running;
    updater_init(&bed->updater, &config);
    if (updater_given_up(&bed->updater, NULL) != 0) {
        updater_reported(&bed->updater);
    }
}

void bed_commit(struct update_bed *bed, uint8_t slot, bool stores,
                bool activates)
{
    const struct nvmf_firmware_commit commit = {
        .slot = slot,
        .stores = stores,
        .activates = activates,
        .len_bytes = BED_FILE_BYTES,
        .host = bed->host,
    };
    struct nvmf_firmware seam = updater_seam(&bed->updater);

    bed->is_done = false;
    bed->was_taken = seam.commit(seam.ctx, &commit);
}

/* Call the updater, and let the time pass until it wants to be called again. */
static void bed_step(struct update_bed *bed)
{
    uint64_t next_us = updater_step(&bed->updater, bed->now_us);

    if (!bed->is_done && next_us != UINT64_MAX) {
        bed->now_us = MAX(bed->now_us, next_us);
    }
}

void bed_run(struct update_bed *bed)
{
    for (int i = 0; !bed->is_done; i++) {
        assert_true(i < BED_STEPS_MAX);
        bed->now_us += 100;
        bed_step(bed);
    }
}

void bed_expect_commit(struct update_bed *bed, uint8_t slot, bool stores,
                       bool activates, enum nvmf_firmware_result result)
{
    bed_commit(bed, slot, stores, activates);
    bed_run(bed);
    log_flush(&bed->log);
    assert_int_equal(bed->result, result);
}

void bed_pass(struct update_bed *bed, uint64_t us)
{
    (void)updater_step(&bed->updater, bed->now_us);
    bed->now_us += us;
    do {
        (void)updater_step(&bed->updater, bed->now_us);
    } while (bed->updater.is_erasing);
}

const char *bed_version(struct update_bed *bed)
{
    const char *version;
    uint8_t image[BED_IMAGE_BYTES];

    assert_true(bed->running == 1 || bed->running == 2);
    version = bed->slots.slot[bed->running - 1].header.version;
    bed_make_image(version, image);
    assert_memory_equal(bed->dram, image, sizeof(image));
    return version;
}

void bed_put_header(struct update_bed *bed, size_t at, uint32_t value)
{
    put_le32(bed->file + at, value);
    put_le32(bed->file + 252, crc32_update(0, bed->file, 252));
}

bool bed_has_logged(const struct update_bed *bed, const char *text)
{
    return strstr(bed->text, text) != NULL;
}
