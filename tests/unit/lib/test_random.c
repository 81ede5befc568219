/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "lib/random.h"

/* The first outputs of other implementations of SplitMix64 for seed 0. */
static const uint64_t numbers_of_seed_0[] = {
    UINT64_C(0xe220a8397b1dcdaf),
    UINT64_C(0x6e789e6aa1b965f4),
    UINT64_C(0x06c45d188009454f),
    UINT64_C(0xf88bb8a8724c81ec),
};

static void test_random_next_gives_the_published_numbers(void **state)
{
    uint64_t random = 0;

    (void)state;
    for (unsigned int i = 0; i < ARRAY_LEN(numbers_of_seed_0); i++) {
        assert_int_equal(random_next(&random), numbers_of_seed_0[i]);
    }
}

static void test_random_mix_gives_the_nth_number_of_a_seed(void **state)
{
    (void)state;
    for (unsigned int i = 0; i < ARRAY_LEN(numbers_of_seed_0); i++) {
        assert_int_equal(random_mix(i * RANDOM_STEP), numbers_of_seed_0[i]);
    }
}
