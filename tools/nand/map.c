/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * essd-nand map: what each superblock holds.  The translation layer mounts the
 * array as the drive does at its next start, but what it writes goes to a
 * private copy in memory, so that the file does not change.
 */
#include "image.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "drive_flash.h"
#include "ftl_run.h"

static void print_word(const char *key, const char *word)
{
    if (word != NULL) {
        printf(", \"%s\": \"%s\"", key, word);
    }
}

static void print_superblock(const struct ftl *ftl, uint32_t superblock)
{
    struct ftl_superblock_look look;

    ftl_look(ftl, superblock, &look);
    printf("%s\n  {\"superblock\": %" PRIu32 ", \"state\": \"%s\"",
           superblock == 0 ? "" : ",", superblock, look.state);
    print_word("stream", look.stream);
    printf(", \"valid\": %" PRIu32 ", \"capacity\": %" PRIu32
           ", \"erasures\": %" PRIu32 ", \"age-rows\": %" PRIu64,
           look.valid, look.capacity, look.erasures, look.age_rows);
    print_word("moves-for", look.moves_for);
    printf("}");
}

static void print_map(const struct ftl_run *run)
{
    const struct ftl *ftl = run->ftl;
    const char *separator = "";

    printf("{\"channels\": %u, \"dies\": %u, \"dead-dies\": [",
           run->image->file.geometry.channels, run->image->file.geometry.dies);
    for (uint32_t die = 0; die < run->config.geometry.dies; die++) {
        if (ftl_die_is_dead(ftl, die)) {
            printf("%s%" PRIu32, separator, die);
            separator = ", ";
        }
    }
    printf("], \"superblocks\": [");
    for (uint32_t i = 0; i < ftl_superblocks(ftl); i++) {
        print_superblock(ftl, i);
    }
    printf("]}\n");
}

static int mount_and_print(struct ftl_run *run, const struct image *image,
                           const struct wishes *wishes)
{
    struct drive_flash drive;
    struct nand_sizes sizes = {
        .has_capacitors = wishes->has_capacitors,
        .hard_bits = image->file.profile->bits[0],
    };

    if (!drive_flash_open(&drive, wishes->flash, false)) {
        return STATUS_FAILED;
    }
    sizes.capacity_bytes = drive.capacity_bytes;
    drive_flash_close(&drive);
    if (!ftl_run_start(run, image, &sizes)) {
        return STATUS_FAILED;
    }
    print_map(run);
    ftl_run_end(run);
    return STATUS_OK;
}

int map_image(const char *path, const struct wishes *wishes)
{
    struct ftl_run *run = calloc(1, sizeof(*run));
    struct image image;
    int status = STATUS_FAILED;

    if (run == NULL) {
        return image_complain(path, "no memory");
    }
    if (!image_open(&image, path, false)) {
        status = image.status;
    } else {
        if (image_make_private(&image)) {
            status = mount_and_print(run, &image, wishes);
        }
        image_close(&image);
    }
    free(run);
    return status;
}
