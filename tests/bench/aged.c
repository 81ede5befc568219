/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/bench/aged.h"

#include <stdbool.h>
#include <stdlib.h>

#include "lib/random.h"
#include "lib/util.h"

enum {
    HOST, /* streams: each has an open superblock */
    MOVE,
    STREAMS,
    COLLECT_BELOW = 5, /* free superblocks: as FTL_COLLECT_BELOW */
    CHECKPOINTS = 1,   /* superblocks that hold no data */
};
#define NONE UINT32_MAX

struct superblock {
    uint32_t valid;
    uint32_t used;   /* units that were programmed */
    uint64_t opened; /* number of its opening; 0: it is free */
    uint64_t closed; /* the clock then; 0: it is open or free */
};

struct model {
    uint32_t superblocks, units; /* units of each superblock */
    uint32_t free;
    uint32_t open[STREAMS];
    uint64_t clock; /* units programmed so far */
    uint64_t openings;
    uint32_t logical_units;
    uint32_t *map;   /* the place of each logical unit, or NONE */
    uint32_t *owner; /* the logical unit of each place */
    struct superblock *all;
};

static void open_superblock(struct model *model, unsigned int stream)
{
    for (uint32_t i = 0; i < model->superblocks; i++) {
        if (model->all[i].opened == 0) {
            model->all[i] = (struct superblock){.opened = ++model->openings};
            model->open[stream] = i;
            model->free--;
            return;
        }
    }
    ASSERT(false);
}

static void program_unit(struct model *model, unsigned int stream,
                         uint32_t logical)
{
    struct superblock *to;
    uint32_t place;

    if (model->open[stream] == NONE) {
        open_superblock(model, stream);
    }
    to = &model->all[model->open[stream]];
    place = model->open[stream] * model->units + to->used++;
    if (model->map[logical] != NONE) {
        model->all[model->map[logical] / model->units].valid--;
    }
    model->map[logical] = place;
    model->owner[place] = logical;
    to->valid++;
    model->clock++;
    if (to->used == model->units) {
        to->closed = model->clock;
        model->open[stream] = NONE;
    }
}

static bool is_better(const struct model *model, const struct superblock *one,
                      const struct superblock *other)
{
    double age = (double)(model->clock - one->closed + 1);
    double other_age = (double)(model->clock - other->closed + 1);

    return age * (model->units - one->valid) / MAX(one->valid, 1u) >
           other_age * (model->units - other->valid) / MAX(other->valid, 1u);
}

static void collect_superblock(struct model *model)
{
    uint32_t victim = NONE, first;

    for (uint32_t i = 0; i < model->superblocks; i++) {
        if (model->all[i].closed != 0 &&
            (victim == NONE ||
             is_better(model, &model->all[i], &model->all[victim]))) {
            victim = i;
        }
    }
    ASSERT(victim != NONE);
    first = victim * model->units;
    for (uint32_t i = first; i < first + model->units; i++) {
        if (model->map[model->owner[i]] == i) {
            program_unit(model, MOVE, model->owner[i]);
        }
    }
    model->all[victim] = (struct superblock){0};
    model->free++;
}

static void write_unit(struct model *model, uint32_t logical)
{
    program_unit(model, HOST, logical);
    while (model->free < COLLECT_BELOW) {
        collect_superblock(model);
    }
}

/* The superblocks that are not free, in the order of their openings. */
static uint32_t sort_superblocks(const struct model *model, uint32_t *order)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < model->superblocks; i++) {
        uint32_t at = count;

        if (model->all[i].opened == 0) {
            continue;
        }
        while (at > 0 &&
               model->all[order[at - 1]].opened > model->all[i].opened) {
            order[at] = order[at - 1];
            at--;
        }
        order[at] = i;
        count++;
    }
    return count;
}

/*
 * List the units of a superblock.  `later` has those that are valid in later
 * ones: one of them stands for each unit that is not valid any more.
 */
static uint32_t list_units(const struct model *model, uint32_t superblock,
                           uint32_t *to, const uint32_t *later, uint32_t count,
                           uint64_t *random)
{
    uint32_t first = superblock * model->units;
    uint32_t used = model->all[superblock].used;

    for (uint32_t i = 0; i < used; i++) {
        uint32_t logical = model->owner[first + i];

        if (model->map[logical] != first + i && count != 0) {
            logical = later[random_next(random) % count];
        }
        to[i] = logical;
    }
    return used;
}

static struct aged_list make_list(const struct model *model, uint64_t *random)
{
    uint32_t *order = calloc(model->superblocks, sizeof(*order));
    uint32_t *later = calloc(model->logical_units, sizeof(*later));
    uint32_t blocks = sort_superblocks(model, order), valid = 0, at = 0;
    struct aged_list list = {0};

    for (uint32_t i = 0; i < blocks; i++) {
        list.count += model->all[order[i]].used;
    }
    list.units = calloc(list.count, sizeof(*list.units));
    ASSERT(order != NULL && later != NULL && list.units != NULL);
    at = list.count;
    for (uint32_t i = blocks; i-- > 0;) {
        uint32_t first = order[i] * model->units;

        at -= model->all[order[i]].used;
        (void)list_units(model, order[i], list.units + at, later, valid,
                         random);
        for (uint32_t u = first; u < first + model->all[order[i]].used; u++) {
            if (model->map[model->owner[u]] == u) {
                later[valid++] = model->owner[u];
            }
        }
    }
    free(order);
    free(later);
    return list;
}

struct aged_list aged_make(const struct aged_config *config)
{
    struct model model = {
        .superblocks = config->superblocks - CHECKPOINTS,
        .units = (uint32_t)(config->flash_units / config->superblocks),
        .open = {NONE, NONE},
        .logical_units = config->logical_units,
    };
    uint64_t random = config->seed;
    uint64_t writes =
        (uint64_t)config->logical_units * config->overwrites_percent / 100;
    struct aged_list list;

    model.free = model.superblocks;
    model.map = calloc(config->logical_units, sizeof(*model.map));
    model.owner =
        calloc((size_t)model.superblocks * model.units, sizeof(*model.owner));
    model.all = calloc(model.superblocks, sizeof(*model.all));
    ASSERT(model.map != NULL && model.owner != NULL && model.all != NULL);
    for (uint32_t i = 0; i < config->logical_units; i++) {
        model.map[i] = NONE;
    }
    for (uint32_t i = 0; i < config->logical_units; i++) {
        write_unit(&model, i);
    }
    for (uint64_t i = 0; i < writes; i++) {
        write_unit(&model,
                   (uint32_t)(random_next(&random) % config->logical_units));
    }
    list = make_list(&model, &random);
    free(model.map);
    free(model.owner);
    free(model.all);
    return list;
}
