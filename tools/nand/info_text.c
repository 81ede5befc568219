/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * essd-nand info: a list, and a picture of fill and wear: a line for each die,
 * from block 0 on the left to the last one on the right.
 */
#include <inttypes.h>
#include <stdio.h>

#include "info.h"

#define DAY_NS (UINT64_C(86400) * 1000000000)

static void print_header(const struct info *info)
{
    const struct nand_file *file = &info->image->file;
    const struct nand_geometry *geometry = &file->geometry;

    printf("profile     %s: %s\n", file->profile->name, file->profile->text);
    printf("geometry    %u channels, %u dies each, %u planes each, %u blocks "
           "each\n",
           geometry->channels, geometry->dies, geometry->planes,
           geometry->blocks);
    printf("block       %u wordlines, %u pages each, %u units each\n",
           geometry->wordlines, geometry->pages, geometry->units);
    printf("capacity    %" PRIu64 " bytes of data\n",
           nand_geometry_bytes(geometry));
    printf("seed        %" PRIu64 "\n", file->seed);
    printf("generation  %" PRIu64 ", nonce %016" PRIx64 "%s\n",
           file->state.generation.count, file->state.generation.nonce,
           file->state.is_clean ? "" : " (not synchronised)");
    printf("time        %.2f days\n",
           (double)file->state.time_ns / (double)DAY_NS);
    printf("file        %" PRIu64 " bytes used of %" PRIu64 "\n",
           info->disk_bytes, info->image->size_bytes);
}

static void draw_columns(const struct info *info, const struct info_die *die)
{
    static const char fill[] = " .:-=+*#%@";
    const struct nand_file *file = &info->image->file;
    const uint32_t rated = file->profile->native.endurance * NAND_WEAR_CYCLE;
    char line[INFO_COLUMNS + 1] = "", wear[INFO_COLUMNS + 1] = "";

    for (unsigned int i = 0; i < INFO_COLUMNS; i++) {
        const struct info_column *column = &die->columns[i];
        uint64_t wordlines =
            (uint64_t)column->blocks * file->geometry.wordlines;
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

static void draw_dies(const struct info *info)
{
    const struct nand_geometry *geometry = &info->image->file.geometry;

    printf("\n           %-*s  tenths of the rated wear\n", INFO_COLUMNS,
           "fill of the blocks");
    for (uint32_t i = 0; i < nand_geometry_dies(geometry); i++) {
        printf("ch %2u die %2u ", i / geometry->dies, i % geometry->dies);
        if (info->dies[i].is_dead) {
            printf("dead\n");
        } else {
            draw_columns(info, &info->dies[i]);
        }
    }
}

static void print_counts(const struct info *info)
{
    uint32_t rated = info->image->file.profile->native.endurance;
    double mean = info_erasures(info->wear_sum, info->worn);

    printf("\nprogrammed  %" PRIu64 " bytes\n", info->programmed_bytes);
    printf("blocks      %u erased, %u open, %u full; %u of all in SLC mode\n",
           info->erased, info->open, info->full, info->slc);
    printf("            %u half programmed, %u half erased\n", info->torn,
           info->half_erased);
    printf("bad blocks  %u from the factory, %u failed later\n",
           info->factory_bad, info->failed);
    printf("wear        %.2f erasures of a block on average (%.2f%% of the "
           "rated %u), %.2f to %.2f\n",
           mean, mean * 100 / rated, rated, info_erasures(info->wear_min, 1),
           info_erasures(info->wear_max, 1));
}

void info_print_text(const struct info *info)
{
    print_header(info);
    draw_dies(info);
    print_counts(info);
}
