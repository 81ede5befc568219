/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Garbage collection and wear on a model of flash that takes no time, never
 * fails, and stores only the system bytes.  It has 8 dies, one of them with
 * parity in each stripe.  The medium is written once in order, and then
 * overwritten at random.  All results are counts, so they repeat.
 *
 * Theory: L. Xiang and B. M. Kurkoski, "An Improved Analytic Expression for
 * Write Amplification in NAND Flash", arXiv 1110.4245, 2011, for large blocks.
 * Let u be the medium's size divided by that of the flash, without the average
 * number of free superblocks.  Let x be the share of invalid units in a
 * superblock when it is collected.  It solves x / -ln(1 - x) = u, and 1 / x
 * units are programmed for each unit written.
 */
#ifndef ESSD_TEST_COLLECT_MODEL_H
#define ESSD_TEST_COLLECT_MODEL_H

#include <stdbool.h>
#include <stdint.h>

/* Which units are written. */
struct collect_workload {
    const char *name;
    unsigned int hot_percent; /* of the medium */
    unsigned int hot_writes;  /* percent of the writes that go there */
};

struct collect_setup {
    struct collect_workload workload;
    const char *victims;      /* see struct ftl_config */
    const char *streams;      /* the same */
    unsigned int percent;     /* spare, as a percentage of the medium */
    unsigned int blocks;      /* of each plane */
    unsigned int writes;      /* so many times the medium is overwritten */
    unsigned int wear_spread; /* see struct ftl_config */
};

/* What the second half of the overwrites has cost. */
struct collect_result {
    double spare;  /* percent, after rounding */
    double cost;   /* units programmed for each unit written, without parity */
    double theory; /* of `cost`, for greedy collection and uniform writes */
    double erasures; /* of each block on average */
    /* The same from the units written, times cost or theory, divided by the
     * units of the flash. */
    double erasures_from_cost;
    double erasures_from_theory;
    uint32_t least, most; /* erasures of a block since the flash was new */
};

/** Measure. @return false when the sizes do not fit together */
bool collect_measure(const struct collect_setup *setup,
                     struct collect_result *result);

#endif
