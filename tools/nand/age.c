/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * essd-nand age: erasures that every block has behind it, and days that have
 * passed.  The contents stay.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

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

int age_image(const char *path, const struct wishes *wishes)
{
    uint8_t buf[NAND_STATE_LEN];
    struct image image;
    bool success = true;

    if (!image_open(&image, path, true)) {
        return image.status;
    }
    /* The contents become another generation: no saved machine fits to it. */
    image.file.state.number++;
    image.file.state.generation++;
    image.file.state.time_ns += wishes->days * DAY_NS;
    nand_state_emit(&image.file.state, buf);
    success = image_write(&image, nand_layout_state(image.file.state.number),
                          buf, sizeof(buf));
    for (uint32_t i = 0;
         success && wishes->erasures != 0 && i < image.num_blocks; i++) {
        success = age_block(&image, i, wishes->erasures);
    }
    success = success && fsync(image.fd) == 0;
    image_close(&image);
    return success ? STATUS_OK
                   : image_complain(path, "it could not be aged completely");
}
