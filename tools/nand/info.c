/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * essd-nand info: what an array is, and a picture of its fill and wear: a line
 * for each die, from block 0 on the left to the last one on the right.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "image.h"

enum { COLUMNS = 48 };

#define DAY_NS (UINT64_C(86400) * 1000000000)

/* What is drawn of some blocks of a die. */
struct column {
    uint64_t programmed; /* wordlines */
    uint64_t wear;
    uint32_t blocks;
};

struct counts {
    uint32_t erased;
    uint32_t open;
    uint32_t full;
    uint32_t torn;
    uint32_t half_erased;
    uint32_t failed;
    uint32_t factory_bad;
    uint32_t slc;
    uint32_t damaged;
    uint64_t programmed_bytes;
    uint64_t wear_sum;
    uint32_t wear_max;
    uint32_t wear_min;
};

/* The number of wordlines that were begun, as they are programmed in order. */
static uint32_t count_begun(const struct image *image, uint32_t block,
                            const struct nand_record *record)
{
    uint32_t low = 0, high = image->file.geometry.wordlines;

    while (low < high) {
        uint32_t middle = (low + high) / 2;

        if (image_wordline(image, block, record, middle, false)) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/* @return the wordlines that are programmed */
static uint32_t count_fill(const struct image *image, uint32_t block,
                           const struct nand_record *record,
                           struct counts *counts)
{
    const struct nand_geometry *geometry = &image->file.geometry;
    uint32_t begun = 0;

    if (image_has_slots(image, block)) {
        begun = count_begun(image, block, record);
    }
    if (begun != 0 && !image_wordline(image, block, record, begun - 1, true)) {
        counts->torn++;
        begun--;
    } else if (begun == 0) {
        counts->erased++;
    } else if (begun == geometry->wordlines) {
        counts->full++;
    } else {
        counts->open++;
    }
    counts->programmed_bytes += (uint64_t)begun * image_pages(image, record) *
                                geometry->units * NAND_UNIT_DATA;
    return begun;
}

static void count_block(const struct image *image, uint32_t block,
                        struct counts *counts, struct column *column)
{
    struct nand_record record;

    if (!image_record(image, block, &record)) {
        counts->damaged++;
        return;
    }
    if ((record.flags & NAND_BLOCK_FACTORY_BAD) != 0) {
        counts->factory_bad++;
        return;
    }
    counts->slc += (record.flags & NAND_BLOCK_SLC) != 0;
    counts->wear_sum += record.wear;
    counts->wear_max = MAX(counts->wear_max, record.wear);
    counts->wear_min = MIN(counts->wear_min, record.wear);
    column->blocks++;
    column->wear += record.wear;
    if ((record.flags & NAND_BLOCK_FAILED) != 0) {
        counts->failed++;
    } else if ((record.flags & NAND_BLOCK_HALF_ERASED) != 0) {
        counts->half_erased++;
    } else {
        column->programmed += count_fill(image, block, &record, counts);
    }
}

static void draw_columns(const struct image *image,
                         const struct column columns[COLUMNS])
{
    static const char fill[] = " .:-=+*#%@";
    const uint32_t rated =
        image->file.profile->native.endurance * NAND_WEAR_CYCLE;
    char line[COLUMNS + 1] = "", wear[COLUMNS + 1] = "";

    for (unsigned int i = 0; i < COLUMNS; i++) {
        const struct column *column = &columns[i];
        uint64_t wordlines =
            (uint64_t)column->blocks * image->file.geometry.wordlines;
        uint64_t level = 0, tenth = 0;

        if (wordlines != 0) {
            level = (column->programmed * 9 + wordlines - 1) / wordlines;
            tenth = column->wear * 10 / column->blocks / rated;
        }
        line[i] = fill[level];
        wear[i] = (char)(tenth > 9 ? '+' : '0' + (int)tenth);
    }
    printf("|%s|%s|\n", line, wear);
}

static void draw_dies(const struct image *image, struct counts *counts)
{
    const struct nand_geometry *geometry = &image->file.geometry;

    printf("\n           %-*s  tenths of the rated wear\n", COLUMNS,
           "fill of the blocks");
    for (uint32_t die = 0; die < nand_geometry_dies(geometry); die++) {
        struct column columns[COLUMNS] = {0};
        uint32_t first = die * geometry->planes * geometry->blocks;
        bool is_dead =
            (image->file.state.dead_dies[die / 8] & BIT(die % 8)) != 0;

        for (uint32_t i = 0; i < (uint32_t)geometry->planes * geometry->blocks;
             i++) {
            uint32_t column = i % geometry->blocks * COLUMNS / geometry->blocks;

            count_block(image, first + i, counts, &columns[column]);
        }
        printf("ch %2u die %2u ", die / geometry->dies, die % geometry->dies);
        if (is_dead) {
            printf("dead\n");
        } else {
            draw_columns(image, columns);
        }
    }
}

static double percent_of_rated(const struct image *image, double wear)
{
    return wear * 100 / NAND_WEAR_CYCLE / image->file.profile->native.endurance;
}

static void print_header(const struct image *image)
{
    const struct nand_geometry *geometry = &image->file.geometry;
    const struct nand_state *state = &image->file.state;
    struct stat about;

    printf("profile     %s: %s\n", image->file.profile->name,
           image->file.profile->text);
    printf("geometry    %u channels, %u dies each, %u planes each, %u blocks "
           "each\n",
           geometry->channels, geometry->dies, geometry->planes,
           geometry->blocks);
    printf("block       %u wordlines, %u pages each, %u units each\n",
           geometry->wordlines, geometry->pages, geometry->units);
    printf("capacity    %" PRIu64 " bytes of data\n",
           nand_geometry_bytes(geometry));
    printf("seed        %" PRIu64 "\n", image->file.seed);
    printf("generation  %" PRIu64 "%s\n", state->generation,
           state->is_clean ? "" : " (not synchronised)");
    printf("time        %.2f days\n", (double)state->time_ns / (double)DAY_NS);
    if (fstat(image->fd, &about) == 0) {
        printf("file        %" PRIu64 " bytes used of %" PRIu64 "\n",
               (uint64_t)about.st_blocks * 512, image->size_bytes);
    }
}

static void print_counts(const struct image *image, const struct counts *counts)
{
    uint32_t blocks = image->num_blocks - counts->factory_bad - counts->damaged;

    printf("\nprogrammed  %" PRIu64 " bytes\n", counts->programmed_bytes);
    printf("blocks      %u erased, %u open, %u full; %u of all in SLC mode\n",
           counts->erased, counts->open, counts->full, counts->slc);
    printf("            %u half programmed, %u half erased, %u failed, %u bad "
           "from the factory\n",
           counts->torn, counts->half_erased, counts->failed,
           counts->factory_bad);
    if (blocks != 0) {
        printf("wear        %.2f%% of the rated %u erasures on average, %.2f%% "
               "to %.2f%%\n",
               percent_of_rated(image, (double)counts->wear_sum / blocks),
               image->file.profile->native.endurance,
               percent_of_rated(image, counts->wear_min),
               percent_of_rated(image, counts->wear_max));
    }
}

int show_image(const char *path)
{
    struct counts counts = {.wear_min = UINT32_MAX};
    struct image image;
    int status = STATUS_OK;

    if (!image_open(&image, path, false)) {
        return STATUS_FAILED;
    }
    print_header(&image);
    draw_dies(&image, &counts);
    print_counts(&image, &counts);
    if (counts.damaged != 0) {
        status = image_complain(path,
                                "%u block records are damaged; see "
                                "essd-nand check",
                                counts.damaged);
    }
    image_close(&image);
    return status;
}
