/* SPDX-License-Identifier: BSD-2-Clause */
#include "firmware/native/blocks.h"

#ifdef ESSD_COUNT_BLOCKS

/*
 * File scope, as the thread's world (world.c): the compiler's calls have no
 * context.
 */
static _Thread_local bool is_counting;
static _Thread_local uint64_t counted;

/* The name that GCC and clang call (-fsanitize-coverage=trace-pc). */
void __sanitizer_cov_trace_pc(void);

__attribute__((no_sanitize_coverage)) void __sanitizer_cov_trace_pc(void)
{
    counted += is_counting;
}

__attribute__((no_sanitize_coverage)) bool blocks_count(bool is_on)
{
    bool was_on = is_counting;

    is_counting = is_on;
    return was_on;
}

__attribute__((no_sanitize_coverage)) uint64_t blocks_take(void)
{
    uint64_t taken = counted;

    counted = 0;
    return taken;
}

#endif
