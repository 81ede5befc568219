/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * essd-nand age: adds erasures and reads to blocks, marks blocks as bad, and
 * lets days pass.  The contents stay, unless the drive is also preconditioned:
 * see fill.h.  The drive's SPI flash gets a note about the erasures, because
 * the drive counts only those that it does itself.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "drive_flash.h"
#include "fill.h"
#include "image.h"
#include "place.h"

#define DAY_NS (UINT64_C(86400) * 1000000000)

/* The model time counts nanoseconds in 64 bits.  What is left beyond these days
 * is for the drive's own use. */
enum { DAYS_MAX = 200000 };

/* Whether a block was neither erased nor programmed.  A new block is programmed
 * for the first time without an erasure. */
static bool is_unused(const struct image *image, uint32_t block,
                      const struct nand_record *record)
{
    return record->number == 0 &&
           image_mark(image, block, record, 0, false) == IMAGE_MARK_NONE;
}

/* A factory marks blocks before they are used.  If a block with data were
 * marked, its data would vanish, which no factory does. */
static bool may_mark(const struct image *image, uint32_t block,
                     const struct nand_record *record)
{
    if ((record->flags & NAND_BLOCK_FACTORY_BAD) != 0 ||
        is_unused(image, block, record)) {
        return true;
    }
    image_complain(image->path,
                   "block %u of plane %u has been in use, so it cannot be "
                   "marked as bad any more, and nothing was changed; "
                   "let its next program fail by a fault rule, or mark blocks "
                   "of a new drive",
                   block % image->file.geometry.blocks,
                   block / image->file.geometry.blocks %
                       image->file.geometry.planes);
    return false;
}

/*
 * Check everything before anything changes: nothing is aged twice if the
 * command is repeated after a failure.  After a power cut, the time goes on
 * from the latest that the state or a record has, so set the state to it.
 */
static bool check_before(struct image *image, const struct place *place,
                         const struct wishes *wishes)
{
    uint64_t *time_ns = &image->file.state.time_ns;
    uint64_t days = wishes->days;

    for (uint32_t i = 0; i < image->num_blocks; i++) {
        struct nand_record record;

        if (!image_record(image, i, &record)) {
            image_complain(image->path,
                           "the record of block %u is damaged, so nothing was "
                           "changed; use a copy of the file, or a new array",
                           i);
            return false;
        }
        *time_ns = MAX(*time_ns, record.time_ns);
        if (wishes->marks_bad && place_has(place, image, i) &&
            !may_mark(image, i, &record)) {
            return false;
        }
    }
    if (days > DAYS_MAX || *time_ns / DAY_NS > DAYS_MAX - days) {
        image_complain(image->path,
                       "at most %u days can pass for an array, and %" PRIu64
                       " have passed; nothing was changed",
                       DAYS_MAX, *time_ns / DAY_NS);
        return false;
    }
    return true;
}

static bool age_block(const struct image *image, uint32_t block,
                      const struct wishes *wishes)
{
    struct nand_record record;
    uint8_t buf[NAND_RECORD_LEN];
    uint64_t wear, reads;

    if (!image_record(image, block, &record)) {
        return false;
    }
    /* The erase number stays: it belongs to the contents. */
    wear = record.wear + wishes->erasures * NAND_WEAR_CYCLE;
    record.wear = (uint32_t)MIN(wear, UINT32_MAX);
    reads = record.reads + wishes->reads;
    record.reads = (uint32_t)MIN(reads, UINT32_MAX);
    if (wishes->marks_bad) {
        record.flags |= NAND_BLOCK_FACTORY_BAD;
    }
    nand_record_emit(&record, block, buf);
    return image_write(image, nand_layout_record(block), buf, sizeof(buf));
}

/* Begin a generation without a nonce: no saved machine has one, so none loads
 * over this file.  The same command on a copy of the file gives the same file.
 */
static bool store_state(struct image *image, uint64_t days)
{
    struct nand_state *state = &image->file.state;
    uint8_t buf[NAND_STATE_LEN];

    state->number++;
    state->generation = (struct nand_generation){
        .count = state->generation.count + 1, .nonce = 0};
    state->time_ns += days * DAY_NS;
    nand_state_emit(state, buf);
    return image_write(image, nand_layout_state(state->number), buf,
                       sizeof(buf));
}

static bool age_blocks(const struct image *image, const struct place *place,
                       const struct wishes *wishes)
{
    if (wishes->erasures == 0 && wishes->reads == 0 && !wishes->marks_bad) {
        return true;
    }
    for (uint32_t i = 0; i < image->num_blocks; i++) {
        if (place_has(place, image, i) && !age_block(image, i, wishes)) {
            return false;
        }
    }
    return true;
}

/* How many erasures each block has on average because some have more: the drive
 * only counts an average. */
static uint64_t average_erasures(const struct image *image,
                                 const struct place *place,
                                 const struct wishes *wishes)
{
    uint64_t blocks = 0;

    for (uint32_t i = 0; i < image->num_blocks; i++) {
        blocks += place_has(place, image, i);
    }
    return wishes->erasures * blocks / image->num_blocks;
}

/* The order matters: the erasures come first, so that the writes find worn
 * blocks, and the days last, so that the written data ages. */
static int age_opened(struct image *image, const struct wishes *wishes,
                      struct drive_flash *drive)
{
    bool is_filled = wishes->fill != 0;
    int status = STATUS_OK;
    struct place place;

    if (!place_parse(&place, image, wishes->place) ||
        !check_before(image, &place, wishes)) {
        return STATUS_FAILED;
    }
    errno = 0;
    if (!store_state(image, is_filled ? 0 : wishes->days) ||
        !age_blocks(image, &place, wishes) || fsync(image->fd) != 0) {
        return image_complain(image->path,
                              "it could not be aged completely: %s; only "
                              "some blocks may be older now",
                              strerror(errno != 0 ? errno : EIO));
    }
    if (drive != NULL && !drive_flash_add_erasures(
                             drive, average_erasures(image, &place, wishes))) {
        return STATUS_FAILED;
    }
    if (is_filled) {
        status = fill_namespaces(image, wishes);
        if (status != STATUS_OK && wishes->erasures != 0) {
            image_complain(image->path, "the erasures were added nevertheless");
        }
    }
    if (status == STATUS_OK && is_filled && wishes->days != 0 &&
        (!image_read_state(image) || !store_state(image, wishes->days) ||
         fsync(image->fd) != 0)) {
        return image_complain(image->path, "no days could pass for it");
    }
    return status;
}

/* Open the drive's SPI flash first: if that fails, nothing changes. */
static int age_drive(struct image *image, const struct wishes *wishes)
{
    struct drive_flash drive;
    int status;

    if (wishes->flash == NULL || wishes->erasures == 0) {
        return age_opened(image, wishes, NULL);
    }
    if (!drive_flash_open(&drive, wishes->flash, true)) {
        return STATUS_FAILED;
    }
    status = age_opened(image, wishes, &drive);
    drive_flash_close(&drive);
    return status;
}

int age_image(const char *path, const struct wishes *wishes)
{
    struct image image;
    int status;

    if (!image_open(&image, path, true)) {
        return image.status;
    }
    status = age_drive(&image, wishes);
    image_close(&image);
    return status;
}
