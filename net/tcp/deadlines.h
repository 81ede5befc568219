/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One deadline for each entry of a table, kept as a heap of indices with the
 * earliest first.  A deadline that moves later costs one store: the entry keeps
 * its place and is sorted again when its old deadline passes.
 */
#ifndef ESSD_NET_TCP_DEADLINES_H
#define ESSD_NET_TCP_DEADLINES_H

#include "lib/util.h"

#define DEADLINE_NONE UINT64_MAX

struct deadline {
    uint64_t key;   /* by entry: its sort key in the heap */
    uint64_t due;   /* by entry: its deadline, never before key */
    uint16_t place; /* by entry: index in the heap plus 1, or 0 */
    uint16_t heap;  /* by place: an entry; the first is due earliest */
};

struct deadlines {
    struct deadline *table;
    uint16_t count; /* of entries in the heap */
};

/** @param table  memory for `entries` of them */
void deadlines_init(struct deadlines *deadlines, struct deadline *table,
                    uint16_t entries);

/** @param due_us  the deadline, or DEADLINE_NONE */
void deadlines_set(struct deadlines *deadlines, uint16_t entry,
                   uint64_t due_us);

/** When to call deadlines_take() next; DEADLINE_NONE for never. */
uint64_t deadlines_next(const struct deadlines *deadlines);

/**
 * Take one entry whose deadline has passed; it has none then.
 *
 * @return false when there is none
 */
MUST_USE bool deadlines_take(struct deadlines *deadlines, uint64_t now_us,
                             uint16_t *entry);

#endif
