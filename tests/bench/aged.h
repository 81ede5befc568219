/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A flash that has been overwritten at random until nothing changes any more,
 * without overwriting it.
 *
 * A model of the translation layer, which has only a map, fills a medium in
 * order and then overwrites it at random, in seconds.  Like
 * the layer, it has a superblock open for hosts and one for units that are
 * moved, and chooses victims by age times space over cost.  Its result is a
 * list of logical units: who writes them in this order to a new drive leaves in
 * each superblock as many valid units as the model has.  So each unit of the
 * flash is programmed once, and by the drive itself.
 */
#ifndef ESSD_TESTS_BENCH_AGED_H
#define ESSD_TESTS_BENCH_AGED_H

#include <stdint.h>

struct aged_config {
    uint32_t logical_units; /* of the medium */
    uint32_t superblocks;   /* of the flash */
    /* Units of the flash without parity; 7% more than logical_units or more. */
    uint64_t flash_units;
    uint32_t overwrites_percent; /* of the medium */
    uint64_t seed;
};

struct aged_list {
    uint32_t *units; /* to be freed by the caller */
    uint32_t count;
};

/** Make the list. */
struct aged_list aged_make(const struct aged_config *config);

#endif
