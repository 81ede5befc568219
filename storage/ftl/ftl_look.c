/* SPDX-License-Identifier: BSD-2-Clause */
/* What superblocks hold, for whoever looks at the drive: see ftl_look(). */
#include "storage/ftl/ops/ops.h"
#include "storage/ftl/state.h"

static const char *const state_name[] = {
    [FTL_SUPERBLOCK_FREE] = "free",       [FTL_SUPERBLOCK_ERASING] = "erasing",
    [FTL_SUPERBLOCK_OPEN] = "open",       [FTL_SUPERBLOCK_CLOSED] = "closed",
    [FTL_SUPERBLOCK_RETIRED] = "retired", [FTL_SUPERBLOCK_META] = "checkpoint",
};

static const char *const cause_name[] = {
    [FTL_CAUSE_READ] = "host read",      [FTL_CAUSE_WRITE] = "host write",
    [FTL_CAUSE_TRIM] = "trim",           [FTL_CAUSE_RECORD] = "record",
    [FTL_CAUSE_COLLECT] = "collection",  [FTL_CAUSE_LEVEL] = "wear levelling",
    [FTL_CAUSE_SCRUB] = "scrub",         [FTL_CAUSE_DISTURB] = "read disturb",
    [FTL_CAUSE_REBUILD] = "rebuild",     [FTL_CAUSE_CHECKPOINT] = "checkpoint",
    [FTL_CAUSE_MOUNT] = "mount",         [FTL_CAUSE_WIPE] = "wipe",
    [FTL_CAUSE_POWER] = "power failure",
};
_Static_assert(ARRAY_LEN(cause_name) == FTL_CAUSES, "every cause has a name");

uint32_t ftl_superblocks(const struct ftl *ftl)
{
    return ftl->layout.superblocks;
}

/* The stream whose rows a superblock takes, or NULL. */
static const char *find_stream(const struct ftl *ftl, uint32_t superblock)
{
    for (uint32_t i = 0; i < ftl->num_streams; i++) {
        if (ftl->streams[i].superblock == superblock) {
            return i == FTL_HOST_STREAM ? "host" : "move";
        }
    }
    return NULL;
}

void ftl_look(const struct ftl *ftl, uint32_t superblock,
              struct ftl_superblock_look *look)
{
    const struct ftl_superblock *at = &ftl->superblocks[superblock];
    bool is_closed = at->state == FTL_SUPERBLOCK_CLOSED;
    bool is_victim = ftl->collection.victim == superblock;

    *look = (struct ftl_superblock_look){
        .state = state_name[at->state],
        .stream = find_stream(ftl, superblock),
        .valid = at->valid,
        .capacity = at->capacity,
        .erasures = ftl->wear[superblock],
        .age_rows = is_closed && ftl->next_row_number > at->last_row
                        ? ftl->next_row_number - at->last_row
                        : 0,
    };
    if (is_victim) {
        look->moves_for = cause_name[ftl->collection.cause];
    } else if (at->moves_soon) {
        look->moves_for = cause_name[at->cause];
    }
}

const struct ftl_counters *ftl_counters(const struct ftl *ftl)
{
    return &ftl->counters;
}

bool ftl_has_parity(const struct ftl *ftl)
{
    return ftl_makes_parity(&ftl->ops_floor);
}

const struct ftl_adopted *ftl_adopted(const struct ftl *ftl)
{
    return &ftl->adopted;
}
