/* SPDX-License-Identifier: BSD-2-Clause */
/* The firmware's own memcpy(), memmove() and memset(), under other names. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "lib/util.h"

enum { BYTES = 256, OFFSETS = 9, LENGTHS = 150 };

void *own_memcpy(void *restrict to, const void *restrict from, size_t len);
void *own_memmove(void *to, const void *from, size_t len);
void *own_memset(void *to, int value, size_t len);

#define memcpy  own_memcpy
#define memmove own_memmove
#define memset  own_memset
#include "firmware/arch/memory.c"
#undef memcpy
#undef memmove
#undef memset

static void fill_bytes(uint8_t *bytes, unsigned int seed)
{
    for (unsigned int i = 0; i < BYTES; i++) {
        bytes[i] = (uint8_t)(i * 7 + seed);
    }
}

static void test_memory_copies_every_length_between_all_alignments(void **state)
{
    _Alignas(8) uint8_t from[BYTES], to[BYTES], expected[BYTES];

    (void)state;
    fill_bytes(from, 1);
    for (unsigned int i = 0; i < OFFSETS * OFFSETS * LENGTHS; i++) {
        unsigned int a = i % OFFSETS, b = i / OFFSETS % OFFSETS;
        size_t len = i / OFFSETS / OFFSETS;

        fill_bytes(to, 99);
        fill_bytes(expected, 99);
        memcpy(expected + a, from + b, len);
        assert_ptr_equal(own_memcpy(to + a, from + b, len), to + a);
        assert_memory_equal(to, expected, BYTES);
    }
}

static void test_memory_moves_bytes_that_overlap(void **state)
{
    _Alignas(8) uint8_t bytes[BYTES], expected[BYTES];

    (void)state;
    for (unsigned int i = 0; i < 90 * LENGTHS; i++) {
        unsigned int a = i % 90, b = 40;
        size_t len = i / 90;

        fill_bytes(bytes, 3);
        fill_bytes(expected, 3);
        memmove(expected + a, expected + b, len);
        assert_ptr_equal(own_memmove(bytes + a, bytes + b, len), bytes + a);
        assert_memory_equal(bytes, expected, BYTES);
    }
}

static void test_memory_is_filled_from_every_alignment(void **state)
{
    _Alignas(8) uint8_t to[BYTES], expected[BYTES];

    (void)state;
    for (unsigned int i = 0; i < OFFSETS * LENGTHS; i++) {
        unsigned int a = i % OFFSETS;
        size_t len = i / OFFSETS;

        fill_bytes(to, 5);
        fill_bytes(expected, 5);
        memset(expected + a, 0x1a5, len);
        assert_ptr_equal(own_memset(to + a, 0x1a5, len), to + a);
        assert_memory_equal(to, expected, BYTES);
    }
}
