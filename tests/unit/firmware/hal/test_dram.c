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

static struct {
    const void *memory;
    size_t len_bytes;
    unsigned int calls;
} cleared;

static void note_clear(void *ctx, const void *at, size_t len_bytes)
{
    assert_ptr_equal(ctx, memory);
    cleared.memory = at;
    cleared.len_bytes = len_bytes;
    cleared.calls++;
}

static void test_lost_words_are_cleared_before_memory_is_given_out(void **state)
{
    struct dram dram;

    (void)state;
    memset(&cleared, 0, sizeof(cleared));
    dram_init(&dram, memory, sizeof(memory));
    dram_clear_lost_words(&dram, note_clear, memory);
    assert_non_null(dram_reserve(&dram, 100, 1));
    assert_ptr_equal(cleared.memory, memory);
    assert_int_equal(cleared.len_bytes, 100);
    assert_non_null(dram_alloc(&dram, 8, 64));
    assert_ptr_equal(cleared.memory, memory + 128);
    assert_int_equal(cleared.len_bytes, 8);
    assert_null(dram_reserve(&dram, sizeof(memory), 1));
    assert_non_null(dram_reserve_end(&dram, 64, 64)); /* keeps its contents */
    assert_int_equal(cleared.calls, 2);
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
