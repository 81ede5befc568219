/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Copies and fills memory, in place of the C library, whose functions are built
 * for size: they move one byte in each turn of a loop, which made a copy of
 * 4 KiB the most expensive part of a write.  The functions here move eight
 * words of eight bytes in each turn if both addresses are aligned alike, since
 * unaligned words would trap on much hardware.
 *
 * The compiler must not turn the loops into calls of the functions that they
 * implement: see firmware/rv64/CMakeLists.txt.
 */
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum { WORD = sizeof(uint64_t), TURN_WORDS = 8, TURN = WORD * TURN_WORDS };

/* Whether both addresses are equally far from the last multiple of a word. */
static bool are_aligned_alike(const void *a, const void *b)
{
    return (((uintptr_t)a ^ (uintptr_t)b) % WORD) == 0;
}

/* The number of bytes until the next word begins. */
static size_t bytes_to_word(const void *at)
{
    return -(uintptr_t)at % WORD;
}

static void copy_turn(uint64_t *to, const uint64_t *from)
{
    uint64_t a = from[0], b = from[1], c = from[2], d = from[3];
    uint64_t e = from[4], f = from[5], g = from[6], h = from[7];

    to[0] = a;
    to[1] = b;
    to[2] = c;
    to[3] = d;
    to[4] = e;
    to[5] = f;
    to[6] = g;
    to[7] = h;
}

/* Copy from the first byte to the last one. */
static void copy_forward(uint8_t *to, const uint8_t *from, size_t len)
{
    if (len >= WORD && are_aligned_alike(to, from)) {
        for (size_t left = bytes_to_word(to); left != 0; left--, len--) {
            *to++ = *from++;
        }
        for (; len >= TURN; len -= TURN, to += TURN, from += TURN) {
            copy_turn((uint64_t *)(void *)to,
                      (const uint64_t *)(const void *)from);
        }
        for (; len >= WORD; len -= WORD, to += WORD, from += WORD) {
            *(uint64_t *)(void *)to = *(const uint64_t *)(const void *)from;
        }
    }
    while (len-- != 0) {
        *to++ = *from++;
    }
}

void *memcpy(void *restrict to, const void *restrict from, size_t len)
{
    copy_forward(to, from, len);
    return to;
}

void *memmove(void *to, const void *from, size_t len)
{
    uint8_t *last = (uint8_t *)to + len;
    const uint8_t *from_last = (const uint8_t *)from + len;

    if ((uintptr_t)to - (uintptr_t)from >= len) {
        copy_forward(to, from, len);
        return to;
    }
    while (len-- != 0) {
        *--last = *--from_last;
    }
    return to;
}

void *memset(void *to, int value, size_t len)
{
    uint64_t word = (uint8_t)value * UINT64_C(0x0101010101010101);
    uint8_t *at = to;

    if (len >= WORD) {
        for (size_t left = bytes_to_word(at); left != 0; left--, len--) {
            *at++ = (uint8_t)value;
        }
        for (; len >= TURN; len -= TURN, at += TURN) {
            uint64_t *words = (uint64_t *)(void *)at;

            for (unsigned int i = 0; i < TURN_WORDS; i++) {
                words[i] = word;
            }
        }
        for (; len >= WORD; len -= WORD, at += WORD) {
            *(uint64_t *)(void *)at = word;
        }
    }
    while (len-- != 0) {
        *at++ = (uint8_t)value;
    }
    return to;
}
