/* SPDX-License-Identifier: BSD-2-Clause */
/* Garbage collection on a model of flash: see collect_model.h. */
#include "tests/bench/collect_model.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "storage/ftl/ftl.h"
#include "lib/random.h"
#include "tests/ftl_moves.h"

enum {
    DIES = 8,
    PLANES = 4,
    PAGES = 1,
    UNITS = 1,
    WORDLINES = 8,
    ROW_UNITS = PLANES * PAGES * UNITS,
    REQUESTS = 64,
    OPS = 32,
    QUEUE = 2 * REQUESTS,
    UNIT_SECTORS = 8,
    MOVES = 16,
};

struct flash {
    struct media_owner owner; /* of all operations */
    uint16_t blocks;
    uint8_t (*system)[FTL_UNIT_SYSTEM]; /* of each unit */
    bool *is_programmed;                /* each row of a die */
    struct ftl_moves moves;
    struct ftl_move move_list[MOVES];
    struct ftl_flash_op queue[QUEUE];
    unsigned int head, tail;
    unsigned int ended; /* operations of the medium */
    uint64_t free_sum;  /* free superblocks, summed over all units written */
    uint64_t samples;
};

static bool submit_op(void *ctx, const struct ftl_flash_op *op)
{
    struct flash *flash = ctx;

    if (flash->tail - flash->head == QUEUE) {
        return false;
    }
    flash->queue[flash->tail++ % QUEUE] = *op;
    return true;
}

static void run_moves(void *ctx)
{
    ftl_moves_run(&((struct flash *)ctx)->moves);
}

static uint32_t row_of(const struct ftl_flash_op *op)
{
    return ((uint32_t)op->block * WORDLINES + op->wordline) * DIES + op->die;
}

static void execute_op(struct flash *flash, const struct ftl_flash_op *op)
{
    uint32_t row = row_of(op);

    for (unsigned int i = 0; i < op->num_units; i++) {
        struct ftl_flash_unit *unit = &op->units[i];
        uint8_t *system =
            flash
                ->system[row * ROW_UNITS +
                         ((uint32_t)unit->page * PLANES + unit->plane) * UNITS +
                         unit->unit];

        if (op->kind == FTL_FLASH_PROGRAM) {
            memcpy(system, unit->system, FTL_UNIT_SYSTEM);
        } else {
            unit->status =
                flash->is_programmed[row] ? FTL_UNIT_GOOD : FTL_UNIT_ERASED;
            if (unit->system != NULL) {
                memcpy(unit->system, system, FTL_UNIT_SYSTEM);
            }
        }
    }
    if (op->kind == FTL_FLASH_PROGRAM) {
        flash->is_programmed[row] = true;
    } else if (op->kind == FTL_FLASH_ERASE) {
        for (uint32_t i = 0; i < WORDLINES; i++) {
            flash->is_programmed[row + i * DIES] = false;
        }
    }
}

static void end_io(struct media_owner *owner, enum media_status status)
{
    struct flash *flash = container_of(owner, struct flash, owner);

    if (status != MEDIA_OK) {
        fprintf(stderr, "collect: an operation failed: status %d\n", status);
        exit(1);
    }
    flash->ended++;
}

/* Step until an operation of the medium ends, or the mount has ended. */
static void run_ftl(struct flash *flash, struct ftl *ftl, unsigned int ended)
{
    while (ended != 0 ? flash->ended < ended : ftl_state(ftl) == FTL_MOUNTING) {
        uint64_t deadline_us = UINT64_MAX;

        (void)ftl_step(ftl, 0, &deadline_us);
        while (flash->head != flash->tail) {
            struct ftl_flash_op op = flash->queue[flash->head++ % QUEUE];

            execute_op(flash, &op);
            ftl_flash_done(ftl, op.cookie, FTL_FLASH_OK, 0);
        }
    }
}

static uint32_t choose_unit(const struct collect_workload *workload,
                            uint32_t units, uint64_t *random)
{
    uint32_t hot = (uint32_t)((uint64_t)units * workload->hot_percent / 100);

    if (random_next(random) % 100 < workload->hot_writes) {
        return (uint32_t)(random_next(random) % hot);
    }
    return hot + (uint32_t)(random_next(random) % (units - hot));
}

static void write_units(struct flash *flash, struct ftl *ftl,
                        const struct collect_workload *workload, uint32_t units,
                        uint64_t count, uint64_t *random)
{
    static uint8_t data[FTL_UNIT_DATA];
    const struct nvmf_piece piece = {.ptr = data, .len_bytes = sizeof(data)};
    unsigned int begun = 0;

    flash->owner.done = end_io;
    flash->ended = 0;
    for (uint64_t i = 0; i < count; i++) {
        const struct media_io io = {
            .op = MEDIA_WRITE,
            .piece_count = 1,
            .pieces = &piece,
            .first_lba =
                (uint64_t)(workload == NULL
                               ? (uint32_t)i
                               : choose_unit(workload, units, random)) *
                UNIT_SECTORS,
            .count_blocks = UNIT_SECTORS,
            .owner = &flash->owner,
        };

        while (!ftl_submit(ftl, &io)) {
            run_ftl(flash, ftl, flash->ended + 1);
        }
        begun++;
        flash->free_sum += ftl_free_superblocks(ftl);
        flash->samples++;
    }
    run_ftl(flash, ftl, begun);
}

/*
 * Return how many units theory says are programmed for each unit written.
 * `used` is the size of the medium divided by that of the flash.  The share x
 * of invalid units in the emptiest superblock solves x / -ln(1 - x) = used, and
 * the result is 1 / x.
 */
static double theory_of(double used)
{
    double low = 1e-6, high = 1 - 1e-6;

    while (high - low > 1e-9) {
        double middle = (low + high) / 2;

        if (middle / -log(1 - middle) > used) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return 1 / low;
}

/* Return what theory says if the free superblocks do not count as flash. */
static double theory_for(const struct flash *flash, uint64_t data_units,
                         uint32_t logical_units)
{
    double free_blocks = (double)flash->free_sum / (double)flash->samples;
    double share = (flash->blocks - free_blocks) / flash->blocks;

    return theory_of(logical_units / ((double)data_units * share));
}

/* The size of the flash without parity. */
static uint64_t count_data_units(unsigned int blocks)
{
    return (uint64_t)blocks * WORDLINES * (DIES - 1) * ROW_UNITS;
}

/* Start the translation layer on a new flash. @return NULL when it cannot */
static struct ftl *start_ftl(struct flash *flash, struct ftl_config *config,
                             const struct collect_setup *setup)
{
    uint64_t data_units = count_data_units(setup->blocks);

    *config = (struct ftl_config){
        .flash = {.ctx = flash,
                  .submit = submit_op,
                  .moves = &flash->moves,
                  .run_moves = run_moves},
        .geometry = {.dies = DIES,
                     .planes = PLANES,
                     .pages = PAGES,
                     .units = UNITS,
                     .blocks = (uint16_t)setup->blocks,
                     .wordlines = WORDLINES},
        .bad_planes = calloc(setup->blocks, DIES),
        .buffer_units = 2 * ROW_UNITS * DIES,
        .num_ops = OPS,
        .num_requests = REQUESTS,
        .idle_us = 1000,
        .wear_spread = setup->wear_spread,
        .victims = setup->victims,
        .streams = setup->streams,
    };
    config->logical_units =
        (uint32_t)(data_units * 100 / (100 + setup->percent));
    config->logical_units = MIN(config->logical_units, ftl_most_units(config));
    config->memory = aligned_alloc(64, (ftl_bytes(config) + 63) / 64 * 64);
    config->keep = aligned_alloc(64, (ftl_keep_bytes(config) + 63) / 64 * 64);
    return config->memory == NULL || config->keep == NULL ? NULL
                                                          : ftl_start(config);
}

/* What has been counted since `before`. */
static void set_result(struct collect_result *result, const struct flash *flash,
                       const struct ftl *ftl, const struct ftl_counters *before,
                       uint32_t logical_units)
{
    const struct ftl_counters *after = ftl_counters(ftl);
    uint64_t data_units = count_data_units(flash->blocks);
    uint64_t units = after->units - before->units;
    uint64_t written = units - (after->moved_units - before->moved_units);
    double turns = (double)written / (double)data_units;
    struct ftl_erase_counts counts;

    ftl_erase_counts(ftl, &counts);
    *result = (struct collect_result){
        .spare = 100.0 * (double)(data_units - logical_units) / logical_units,
        .cost = (double)units / (double)written,
        .theory = theory_for(flash, data_units, logical_units),
        .erasures =
            (double)(after->erasures - before->erasures) / flash->blocks,
        .least = counts.least,
        .most = counts.most,
    };
    result->erasures_from_cost = turns * result->cost;
    result->erasures_from_theory = turns * result->theory;
}

bool collect_measure(const struct collect_setup *setup,
                     struct collect_result *result)
{
    size_t rows = (size_t)setup->blocks * WORDLINES * DIES;
    struct flash flash = {
        .blocks = (uint16_t)setup->blocks,
        .system = calloc(rows * ROW_UNITS, FTL_UNIT_SYSTEM),
        .is_programmed = calloc(rows, sizeof(bool)),
        .moves = {.max = MOVES},
    };
    struct ftl_config config;
    struct ftl_counters before;
    uint64_t random = 1, count;
    struct ftl *ftl;

    flash.moves.list = flash.move_list;
    ftl = start_ftl(&flash, &config, setup);
    if (ftl != NULL) {
        count = (uint64_t)config.logical_units * setup->writes / 2;
        run_ftl(&flash, ftl, 0);
        write_units(&flash, ftl, NULL, config.logical_units,
                    config.logical_units, &random);
        write_units(&flash, ftl, &setup->workload, config.logical_units, count,
                    &random);
        before = *ftl_counters(ftl);
        flash.free_sum = flash.samples = 0;
        write_units(&flash, ftl, &setup->workload, config.logical_units, count,
                    &random);
        set_result(result, &flash, ftl, &before, config.logical_units);
    }
    free(flash.system);
    free(flash.is_programmed);
    free((void *)(uintptr_t)config.bad_planes);
    free(config.memory);
    free(config.keep);
    return ftl != NULL;
}
