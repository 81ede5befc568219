/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What every fuzz target provides: the function that libFuzzer calls, and
 * optionally its seeds.
 */
#ifndef ESSD_TESTS_FUZZ_REPLAY_H
#define ESSD_TESTS_FUZZ_REPLAY_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/** Try one input. Any fault ends the process. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

/**
 * A valid input to start from; targets whose seeds are files have no such
 * function.
 *
 * @return its length, at most `room`; 0 when there is no seed `n`
 */
size_t fuzz_seed(size_t n, uint8_t *buf, size_t room) __attribute__((weak));

/* What is left of an input that a target reads from its beginning. */
struct input {
    const uint8_t *data;
    size_t len;
};

/** The next byte, or 0. */
static inline uint8_t take_byte(struct input *in)
{
    if (in->len == 0) {
        return 0;
    }
    in->len--;
    return *in->data++;
}

/** Copy the next `most` bytes, or those that are left; return how many. */
static inline uint32_t take_bytes(struct input *in, uint8_t *to, uint32_t most)
{
    uint32_t len = in->len < most ? (uint32_t)in->len : most;

    if (len > 0) {
        memcpy(to, in->data, len);
        in->data += len;
        in->len -= len;
    }
    return len;
}

#endif
