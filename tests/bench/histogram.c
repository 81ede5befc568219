/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/bench/histogram.h"

#include "lib/util.h"

enum { HALF_BITS = 7 };

/* By how many bits a value of the bucket is longer than eight bits. */
static unsigned int shift_of(unsigned int index)
{
    return index < 2 * HISTOGRAM_HALF ? 0 : index / HISTOGRAM_HALF - 1;
}

static unsigned int bucket_of(uint64_t value)
{
    unsigned int shift;

    if (value < 2 * HISTOGRAM_HALF) {
        return (unsigned int)value;
    }
    shift = 63u - (unsigned int)__builtin_clzll(value) - HALF_BITS;
    return shift * HISTOGRAM_HALF + (unsigned int)(value >> shift);
}

void histogram_add(struct histogram *histogram, uint64_t value)
{
    histogram->counts[bucket_of(value)]++;
    histogram->count++;
    histogram->sum += value;
    histogram->max = MAX(histogram->max, value);
}

uint64_t histogram_top(unsigned int index)
{
    unsigned int shift = shift_of(index);
    uint64_t digits = index - (uint64_t)shift * HISTOGRAM_HALF;

    return ((digits + 1) << shift) - 1;
}

uint64_t histogram_percentile(const struct histogram *histogram,
                              uint32_t millionths)
{
    uint64_t wanted = (histogram->count * millionths + 999999) / 1000000;
    uint64_t below = 0;

    for (unsigned int i = 0; i < HISTOGRAM_BUCKETS; i++) {
        below += histogram->counts[i];
        if (below >= MAX(wanted, 1u)) {
            return MIN(histogram_top(i), histogram->max);
        }
    }
    return 0;
}
