/* SPDX-License-Identifier: BSD-2-Clause */
/* essd-nand info: what an array is, and its fill and wear. */
#include "info.h"

#include <stdlib.h>
#include <sys/stat.h>

/* The number of wordlines that were begun, as they are programmed in order. */
static uint32_t count_begun(const struct image *image, uint32_t block,
                            const struct nand_record *record)
{
    uint32_t low = 0, high = image->file.geometry.wordlines;

    while (low < high) {
        uint32_t middle = (low + high) / 2;

        if (image_is_begun(image, block, record, middle)) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/* @return the wordlines that are programmed */
static uint32_t count_fill(struct info *info, uint32_t block,
                           const struct nand_record *record)
{
    const struct image *image = info->image;
    const struct nand_geometry *geometry = &image->file.geometry;
    uint32_t begun = 0;

    if (image_has_slots(image, block)) {
        begun = count_begun(image, block, record);
    }
    if (begun != 0 && !image_is_ended(image, block, record, begun - 1)) {
        info->torn++;
        begun--;
    } else if (begun == 0) {
        info->erased++;
    } else if (begun == geometry->wordlines) {
        info->full++;
    } else {
        info->open++;
    }
    info->programmed_bytes += (uint64_t)begun * image_pages(image, record) *
                              geometry->units * NAND_UNIT_DATA;
    return begun;
}

static void count_block(struct info *info, uint32_t block,
                        struct info_column *column)
{
    struct nand_record record;

    if (!image_record(info->image, block, &record)) {
        info->damaged++;
        return;
    }
    if ((record.flags & NAND_BLOCK_FACTORY_BAD) != 0) {
        info->factory_bad++;
        return;
    }
    info->worn++;
    info->slc += (record.flags & NAND_BLOCK_SLC) != 0;
    info->wear_sum += record.wear;
    info->wear_max = MAX(info->wear_max, record.wear);
    info->wear_min = MIN(info->wear_min, record.wear);
    column->blocks++;
    column->wear += record.wear;
    if ((record.flags & NAND_BLOCK_FAILED) != 0) {
        info->failed++;
    } else if ((record.flags & NAND_BLOCK_HALF_ERASED) != 0) {
        info->half_erased++;
    } else {
        column->programmed += count_fill(info, block, &record);
    }
}

static void count_die(struct info *info, uint32_t number)
{
    const struct nand_file *file = &info->image->file;
    uint32_t blocks = file->geometry.blocks;
    uint32_t count = file->geometry.planes * blocks;
    struct info_die *die = &info->dies[number];

    die->is_dead = (file->state.dead_dies[number / 8] & BIT(number % 8)) != 0;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t column = i % blocks * INFO_COLUMNS / blocks;

        count_block(info, number * count + i, &die->columns[column]);
    }
}

int show_image(const char *path, const struct wishes *wishes)
{
    struct image image;
    struct info info = {.image = &image,
                        .spare_percent = wishes->spare_percent,
                        .wear_min = UINT32_MAX};
    struct stat about;
    uint32_t dies;

    if (!image_open(&image, path, false)) {
        return image.status;
    }
    dies = nand_geometry_dies(&image.file.geometry);
    info.dies = calloc(dies, sizeof(*info.dies));
    if (info.dies == NULL) {
        image_close(&image);
        return image_complain(path, "no memory");
    }
    if (fstat(image.fd, &about) == 0) {
        info.disk_bytes = (uint64_t)about.st_blocks * 512;
    }
    for (uint32_t i = 0; i < dies; i++) {
        count_die(&info, i);
    }
    if (info.worn == 0) {
        info.wear_min = 0;
    }
    if (wishes->as_json) {
        info_print_json(&info);
    } else {
        info_print_text(&info);
    }
    free(info.dies);
    image_close(&image);
    return info.damaged == 0
               ? STATUS_OK
               : image_complain(path, "%u block records are damaged",
                                info.damaged);
}
