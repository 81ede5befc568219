/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "firmware/hal/dram.h"

#include <string.h>

static uint8_t memory[4096] __attribute__((aligned(4096)));

static void test_dram_hands_out_zeroed_aligned_pieces(void **state)
{
    struct dram dram;
    uint8_t *a, *b;

    (void)state;
    memset(memory, 0xa5, sizeof(memory));
    dram_init(&dram, memory + 1, sizeof(memory) - 1);
    a = dram_alloc(&dram, 3, 1);
    b = dram_alloc(&dram, 64, 256);
    assert_ptr_equal(a, memory + 1);
    assert_ptr_equal(b, memory + 256);
    for (size_t i = 0; i < 64; i++) {
        assert_int_equal(b[i], 0);
    }
    assert_int_equal(b[64], 0xa5);
}

static void test_dram_that_is_short_changes_nothing(void **state)
{
    struct dram dram;

    (void)state;
    dram_init(&dram, memory, 100);
    assert_null(dram_alloc(&dram, 101, 1));
    assert_null(dram_alloc(&dram, SIZE_MAX, 4096));
    assert_non_null(dram_alloc(&dram, 60, 1));
    assert_null(dram_alloc(&dram, 40, 64));
    assert_int_equal(dram.used_bytes, 60);
    assert_non_null(dram_alloc(&dram, 36, 64));
    assert_int_equal(dram.used_bytes, 100);
    assert_null(dram_alloc(&dram, 1, 1));
}
