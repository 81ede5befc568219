/* SPDX-License-Identifier: BSD-2-Clause */
/* essd-nand info --json: one object; `essd fields media` lists its fields. */
#include <inttypes.h>
#include <stdio.h>

#include "info.h"
#include "space.h"

static void print_number(const char *name, uint64_t value)
{
    printf("  \"%s\": %" PRIu64 ",\n", name, value);
}

static void print_header(const struct info *info)
{
    const struct nand_file *file = &info->image->file;
    const struct nand_geometry *geometry = &file->geometry;

    /* The texts of profiles need no escapes. */
    printf("  \"profile\": \"%s\",\n  \"description\": \"%s\",\n",
           file->profile->name, file->profile->text);
    print_number("channels", geometry->channels);
    print_number("dies", geometry->dies);
    print_number("planes", geometry->planes);
    print_number("blocks", geometry->blocks);
    print_number("wordlines", geometry->wordlines);
    print_number("pages", geometry->pages);
    print_number("units", geometry->units);
    print_number("capacity_bytes", nand_geometry_bytes(geometry));
    print_number("space_bytes", space_bytes(geometry, file->profile, file->seed,
                                            info->spare_percent));
    print_number("programmed_bytes", info->programmed_bytes);
    print_number("file_bytes", info->image->size_bytes);
    print_number("disk_bytes", info->disk_bytes);
    print_number("seed", file->seed);
    print_number("generation", file->state.generation.count);
    printf("  \"generation_nonce\": \"%016" PRIx64 "\",\n",
           file->state.generation.nonce);
    printf("  \"is_synchronised\": %s,\n",
           file->state.is_clean ? "true" : "false");
    printf("  \"time_s\": %.3f,\n", (double)file->state.time_ns / 1e9);
}

static void print_counts(const struct info *info)
{
    print_number("erased_blocks", info->erased);
    print_number("open_blocks", info->open);
    print_number("full_blocks", info->full);
    print_number("half_programmed_blocks", info->torn);
    print_number("half_erased_blocks", info->half_erased);
    print_number("slc_blocks", info->slc);
    print_number("factory_bad_blocks", info->factory_bad);
    print_number("failed_blocks", info->failed);
    print_number("damaged_blocks", info->damaged);
    print_number("rated_erasures", info->image->file.profile->native.endurance);
    printf("  \"min_erasures\": %.3f,\n", info_erasures(info->wear_min, 1));
    printf("  \"mean_erasures\": %.3f,\n",
           info_erasures(info->wear_sum, info->worn));
    printf("  \"max_erasures\": %.3f,\n", info_erasures(info->wear_max, 1));
}

static void print_fill(const struct info *info, const struct info_die *die)
{
    uint32_t wordlines = info->image->file.geometry.wordlines;

    for (unsigned int i = 0; i < INFO_COLUMNS; i++) {
        const struct info_column *column = &die->columns[i];
        double all = (double)column->blocks * wordlines;

        printf("%s%.3f", i == 0 ? "" : ", ",
               column->blocks == 0 ? 0 : (double)column->programmed / all);
    }
}

static void print_wear(const struct info_die *die)
{
    for (unsigned int i = 0; i < INFO_COLUMNS; i++) {
        printf("%s%.3f", i == 0 ? "" : ", ",
               info_erasures(die->columns[i].wear, die->columns[i].blocks));
    }
}

static void print_dies(const struct info *info)
{
    const struct nand_geometry *geometry = &info->image->file.geometry;

    printf("  \"die_map\": [\n");
    for (uint32_t i = 0; i < nand_geometry_dies(geometry); i++) {
        const struct info_die *die = &info->dies[i];

        printf("%s    {\"channel\": %u, \"die\": %u, \"is_dead\": %s,\n"
               "     \"fill\": [",
               i == 0 ? "" : ",\n", i / geometry->dies, i % geometry->dies,
               die->is_dead ? "true" : "false");
        print_fill(info, die);
        printf("],\n     \"erasures\": [");
        print_wear(die);
        printf("]}");
    }
    printf("\n  ]\n");
}

void info_print_json(const struct info *info)
{
    printf("{\n");
    print_header(info);
    print_counts(info);
    print_dies(info);
    printf("}\n");
}
