/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What every fuzz target provides: the function that libFuzzer calls, and
 * optionally its seeds.
 */
#ifndef ESSD_TESTS_FUZZ_REPLAY_H
#define ESSD_TESTS_FUZZ_REPLAY_H

#include <stddef.h>
#include <stdint.h>

/** Try one input. Any fault ends the process. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

/**
 * A valid input to start from; targets whose seeds are files have no such
 * function.
 *
 * @return its length, at most `room`; 0 when there is no seed `n`
 */
size_t fuzz_seed(size_t n, uint8_t *buf, size_t room) __attribute__((weak));

#endif
