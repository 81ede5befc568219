/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A histogram of latencies whose buckets are log-linear, as those of
 * HdrHistogram with two significant digits: a value is off by less than 1%.
 */
#ifndef ESSD_TESTS_BENCH_HISTOGRAM_H
#define ESSD_TESTS_BENCH_HISTOGRAM_H

#include <stdint.h>

enum {
    HISTOGRAM_HALF = 128, /* buckets of each power of two above 255 */
    HISTOGRAM_BUCKETS = 2 * HISTOGRAM_HALF + 56 * HISTOGRAM_HALF,
};

struct histogram {
    uint64_t count;
    uint64_t sum;
    uint64_t max;
    uint64_t counts[HISTOGRAM_BUCKETS];
};

void histogram_add(struct histogram *histogram, uint64_t value);

/** The highest value that bucket `index` holds. */
uint64_t histogram_top(unsigned int index);

/** The value that `millionths` of the values do not exceed; 0: no values. */
uint64_t histogram_percentile(const struct histogram *histogram,
                              uint32_t millionths);

#endif
