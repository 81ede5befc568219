/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Registers for the tests of simple drivers: every access is compared with a
 * list of what has to come, in order; reads give the list's value.
 */
#ifndef TESTS_FAKE_MMIO_H
#define TESTS_FAKE_MMIO_H

#include "lib/util.h"

struct access {
    char kind; /* 'r' or 'w', upper case: 8 bits instead of 32 */
    uintptr_t addr;
    uint32_t value;
};

/* What has to come next; the list before must have been used up. */
void fake_mmio_expect(const struct access *accesses, size_t count);

/* Everything expected has come. */
void fake_mmio_done(void);

#define EXPECT(...)                                                            \
    fake_mmio_expect((const struct access[]){__VA_ARGS__},                     \
                     ARRAY_LEN(((const struct access[]){__VA_ARGS__})))

#endif
