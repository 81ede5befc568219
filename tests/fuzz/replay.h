/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What every fuzz target offers: the two functions that libFuzzer knows by
 * name, or would.
 */
#ifndef ESSD_TESTS_FUZZ_REPLAY_H
#define ESSD_TESTS_FUZZ_REPLAY_H

#include <stddef.h>
#include <stdint.h>

/** Try one input.  Whatever is wrong ends the process. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

/**
 * A good input to start from; targets whose seeds are files do without.
 *
 * @return its length, at most `room`; 0: there is no seed `n`
 */
size_t fuzz_seed(size_t n, uint8_t *buf, size_t room) __attribute__((weak));

#endif
