/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Decisions that may be made in several ways.  Each way is a policy: a file of
 * its own with a few lines, and a row of the table in ftl_policies.c.
 * ftl_config names the policies of a drive.
 *
 * A policy sees only its arguments, so that it cannot do any harm: whether a
 * superblock may be moved or erased at all is decided before it is asked.
 */
#ifndef ESSD_FTL_POLICIES_H
#define ESSD_FTL_POLICIES_H

#include <stdbool.h>
#include <stdint.h>

#include "storage/ftl/ftl_flash.h"

/* What a policy of garbage collection knows about a superblock that gives
 * space. */
struct ftl_victim {
    uint32_t valid;    /* units that have to be moved; not 0 */
    uint32_t capacity; /* units; `valid` is less */
    uint64_t age; /* rows that were programmed since it was closed, plus 1 */
};

struct ftl_victim_policy {
    const char *name;
    /* Whether one superblock is a better victim than another one. */
    bool (*is_better)(const struct ftl_victim *one,
                      const struct ftl_victim *other);
};

struct ftl_levelling_policy {
    const char *name;
    /* Whether the closed superblock that was erased the fewest times is to be
     * moved.  @param most  the largest count of all superblocks
     * @param spread  ftl_config.wear_spread */
    bool (*is_due)(uint32_t least, uint32_t most, uint32_t spread);
};

enum { FTL_MOVED_STREAMS_MAX = 2 };

struct ftl_stream_policy {
    const char *name;
    /* Streams for what is moved, 1 to FTL_MOVED_STREAMS_MAX.  Each has an open
     * superblock, which is not full and cannot be a victim. */
    uint8_t moved;
    /* The stream that takes the valid units of a victim, 0 to moved - 1.
     * @param cause  why the victim is moved */
    uint8_t (*choose)(enum ftl_cause cause);
};

extern const struct ftl_victim_policy ftl_cost_benefit, ftl_greedy;
extern const struct ftl_levelling_policy ftl_level_spread, ftl_level_never;
extern const struct ftl_stream_policy ftl_streams_by_source,
    ftl_streams_by_cause;

/** The rows of a table, in order. @return NULL after the last one */
const struct ftl_victim_policy *ftl_victim_policy(unsigned int row);
const struct ftl_stream_policy *ftl_stream_policy(unsigned int row);

/** @param name  NULL: the first policy of the table
 * @return NULL when no policy has this name */
const struct ftl_victim_policy *ftl_find_victim_policy(const char *name);
const struct ftl_levelling_policy *ftl_find_levelling_policy(const char *name);
const struct ftl_stream_policy *ftl_find_stream_policy(const char *name);

#endif
