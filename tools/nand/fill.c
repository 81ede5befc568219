/* SPDX-License-Identifier: BSD-2-Clause */
/* Preconditioning of a drive: see fill.h. */
#include "fill.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "drive_flash.h"
#include "ftl_run.h"
#include "lib/bytes.h"
#include "lib/random.h"

enum {
    UNIT_SHIFT = NAND_SIZES_UNIT_SHIFT,
    UNITS_PER_MIB_SHIFT = 20 - UNIT_SHIFT,
    PROGRESS_UNITS = 8192, /* between two lines that show the progress */
};

/* A namespace. */
struct target {
    const struct volume_entry *ns;
    uint32_t nsid;
    uint64_t first;  /* number of its first unit among all that are filled */
    uint64_t filled; /* units */
};

struct fill {
    const struct wishes *wishes;
    struct drive_flash drive;
    struct ftl_run run;
    struct volume_table table;
    struct target targets[VOLUME_NAMESPACES];
    uint32_t num_targets;
    uint64_t all;        /* units of all namespaces */
    uint64_t filled;     /* units of all namespaces that are filled */
    uint64_t overwrites; /* units that are written after the first pass */
    uint64_t done;
    unsigned int percent;       /* that was printed last */
    struct ftl_counters before; /* before the second half of the overwrites */
};

/* ---- Interruption. */

static volatile sig_atomic_t is_interrupted;

static void note_signal(int number)
{
    (void)number;
    is_interrupted = 1;
}

static void catch_signals(void)
{
    struct sigaction action = {.sa_handler = note_signal};

    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

/* ---- Units. */

/* The unit of the medium that holds a unit of a namespace. */
static uint32_t locate_unit(const struct fill *fill,
                            const struct target *target, uint64_t unit)
{
    unsigned int shift = fill->table.window_shift - UNIT_SHIFT;
    uint64_t window =
        fill->table.list[target->ns->first_entry + (unit >> shift)];

    return (uint32_t)((window << shift) +
                      (unit & ((UINT64_C(1) << shift) - 1)));
}

static const struct target *find_target(const struct fill *fill,
                                        uint64_t number)
{
    const struct target *target = fill->targets;

    while (number - target->first >= target->filled) {
        target++;
    }
    return target;
}

static void write_pattern(uint8_t data[FTL_UNIT_DATA], uint64_t unit,
                          uint32_t nsid, uint32_t write)
{
    put_le64(data + FILL_PATTERN_UNIT, unit);
    put_le32(data + FILL_PATTERN_NSID, nsid);
    put_le32(data + FILL_PATTERN_WRITE, write);
    for (size_t len = FILL_PATTERN_LEN; len < FTL_UNIT_DATA; len *= 2) {
        memcpy(data + len, data, len);
    }
}

/* @param number  of the unit among all that are filled */
static bool write_unit(struct fill *fill, uint64_t number, uint32_t write)
{
    const struct target *target = find_target(fill, number);
    uint64_t unit = number - target->first;
    struct ftl_run_write *buffer = ftl_run_take(&fill->run);

    if (buffer == NULL) {
        return false;
    }
    write_pattern(buffer->data, unit, target->nsid, write);
    return ftl_run_submit(&fill->run, buffer, locate_unit(fill, target, unit));
}

/* ---- The course. */

static void show_progress(struct fill *fill)
{
    uint64_t all = fill->filled + fill->overwrites;

    fill->done++;
    if (fill->wishes->shows_progress &&
        (fill->done % PROGRESS_UNITS == 0 || fill->done == all)) {
        printf("progress %u\n", (unsigned int)(fill->done * 100 / all));
        fflush(stdout);
    }
}

static bool write_first_pass(struct fill *fill)
{
    for (uint64_t i = 0; i < fill->filled && !is_interrupted; i++) {
        if (!write_unit(fill, i, 0)) {
            return false;
        }
        show_progress(fill);
    }
    return true;
}

static bool overwrite_units(struct fill *fill)
{
    uint64_t random = fill->wishes->seed;

    for (uint64_t i = 0; i < fill->overwrites && !is_interrupted; i++) {
        uint64_t chosen =
            fill->wishes->is_sequential ? i : random_next(&random);

        if (i == fill->overwrites / 2) {
            fill->before = *ftl_counters(fill->run.ftl);
        }
        if (!write_unit(fill, chosen % fill->filled, (uint32_t)(i + 1))) {
            return false;
        }
        show_progress(fill);
    }
    return true;
}

/* Find the namespaces, and how much of them is written. */
static bool find_targets(struct fill *fill)
{
    uint64_t bytes = (uint64_t)ftl_capacity(fill->run.ftl) << UNIT_SHIFT;

    if (!drive_flash_namespaces(&fill->drive, bytes, &fill->table)) {
        return false;
    }
    for (uint32_t nsid = 1; nsid <= VOLUME_NAMESPACES; nsid++) {
        const struct volume_entry *ns = volume_table_find(&fill->table, nsid);
        struct target *target = &fill->targets[fill->num_targets];
        uint64_t units;

        if (ns == NULL) {
            continue;
        }
        if (ns->is_cut || ns->is_erasing || ns->protection != PROTECTION_NONE) {
            image_complain(fill->drive.path,
                           "namespace %u is write-protected, is being "
                           "formatted, or does not fit on the medium",
                           nsid);
            return false;
        }
        units = ns->size_bytes >> UNIT_SHIFT;
        *target = (struct target){.ns = ns,
                                  .nsid = nsid,
                                  .first = fill->filled,
                                  .filled = units * fill->wishes->fill / 100};
        fill->all += units;
        fill->filled += target->filled;
        fill->num_targets++;
    }
    fill->overwrites = fill->all * fill->wishes->drive_writes;
    if (fill->filled == 0) {
        image_complain(fill->drive.path, "the drive has no namespaces to fill");
    }
    return fill->filled != 0;
}

static void print_results(const struct fill *fill)
{
    const struct ftl_counters *now = ftl_counters(fill->run.ftl);
    uint64_t units = now->units - fill->before.units;
    uint64_t moved = now->moved_units - fill->before.moved_units;
    struct ftl_erase_counts erasures;

    ftl_erase_counts(fill->run.ftl, &erasures);
    printf("filled %" PRIu64 " MiB of %" PRIu64 " MiB",
           fill->filled >> UNITS_PER_MIB_SHIFT,
           fill->all >> UNITS_PER_MIB_SHIFT);
    if (fill->overwrites != 0) {
        printf(", then wrote %" PRIu64 " MiB %s; units programmed for each "
               "unit written, without parity: %.2f",
               fill->overwrites >> UNITS_PER_MIB_SHIFT,
               fill->wishes->is_sequential ? "sequentially" : "at random",
               (double)units / (double)(units - moved));
    }
    printf("; erasures of the drive's blocks: %u to %u\n", erasures.least,
           erasures.most);
}

static int run_fill(struct fill *fill, const struct image *image)
{
    if (!find_targets(fill)) {
        return STATUS_FAILED;
    }
    catch_signals();
    if (!write_first_pass(fill) || !overwrite_units(fill) ||
        !ftl_run_stop(&fill->run)) {
        return ftl_run_complain(&fill->run);
    }
    if (is_interrupted) {
        return image_complain(
            image->path, "interrupted; the drive has %u%% of the writes",
            (unsigned int)(fill->done * 100 /
                           (fill->filled + fill->overwrites)));
    }
    print_results(fill);
    return STATUS_OK;
}

static int open_and_fill(struct fill *fill, const struct image *image)
{
    struct nand_sizes sizes = {
        .has_capacitors = fill->wishes->has_capacitors,
        .hard_bits = image->file.profile->bits[0],
    };
    int status = STATUS_FAILED;

    if (!drive_flash_open(&fill->drive, fill->wishes->flash, false)) {
        return STATUS_FAILED;
    }
    sizes.capacity_bytes = fill->drive.capacity_bytes;
    if (drive_flash_is_sanitized(&fill->drive)) {
        image_complain(fill->drive.path,
                       "a Sanitize of the drive has not ended, or has failed; "
                       "start the drive, and let a Sanitize succeed");
    } else if (ftl_run_start(&fill->run, image, &sizes)) {
        status = run_fill(fill, image);
        ftl_run_end(&fill->run);
    }
    drive_flash_close(&fill->drive);
    return status;
}

int fill_namespaces(const struct image *image, const struct wishes *wishes)
{
    struct fill *fill = calloc(1, sizeof(*fill));
    int status;

    if (fill == NULL) {
        return image_complain(image->path, "no memory");
    }
    fill->wishes = wishes;
    status = open_and_fill(fill, image);
    free(fill);
    return status;
}
