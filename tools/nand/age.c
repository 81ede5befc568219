/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * essd-nand age: adds erasures to every block, and lets days pass.  The
 * contents stay, unless the drive is also preconditioned: see fill.h.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "fill.h"
#include "image.h"

#define DAY_NS (UINT64_C(86400) * 1000000000)

static bool age_block(const struct image *image, uint32_t block,
                      uint64_t erasures)
{
    struct nand_record record;
    uint8_t buf[NAND_RECORD_LEN];
    uint64_t wear;

    if (!image_record(image, block, &record)) {
        image_complain(image->path, "the record of block %u is damaged", block);
        return false;
    }
    /* The erase number stays: it belongs to the contents. */
    wear = record.wear + erasures * NAND_WEAR_CYCLE;
    record.wear = (uint32_t)MIN(wear, UINT32_MAX);
    nand_record_emit(&record, block, buf);
    return image_write(image, nand_layout_record(block), buf, sizeof(buf));
}

/* Count up the generation of the contents, so that no saved machine matches the
 * file any longer. */
static bool store_state(struct image *image, uint64_t days)
{
    struct nand_state *state = &image->file.state;
    uint8_t buf[NAND_STATE_LEN];

    state->number++;
    state->generation++;
    state->time_ns += days * DAY_NS;
    nand_state_emit(state, buf);
    return image_write(image, nand_layout_state(state->number), buf,
                       sizeof(buf));
}

static bool add_erasures(const struct image *image, uint64_t erasures)
{
    for (uint32_t i = 0; erasures != 0 && i < image->num_blocks; i++) {
        if (!age_block(image, i, erasures)) {
            return false;
        }
    }
    return true;
}

/* The order matters: the erasures come first, so that the writes find worn
 * blocks, and the days last, so that the written data ages. */
static int age_opened(struct image *image, const struct wishes *wishes)
{
    bool is_filled = wishes->fill != 0;
    int status = STATUS_OK;

    if (!store_state(image, is_filled ? 0 : wishes->days) ||
        !add_erasures(image, wishes->erasures) || fsync(image->fd) != 0) {
        return image_complain(image->path, "it could not be aged completely");
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

int age_image(const char *path, const struct wishes *wishes)
{
    struct image image;
    int status;

    if (!image_open(&image, path, true)) {
        return image.status;
    }
    status = age_opened(&image, wishes);
    image_close(&image);
    return status;
}
