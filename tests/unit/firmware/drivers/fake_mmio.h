/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Registers for the tests of simple drivers.  Every access is compared with the
 * next one of a list; reads return the list's value.
 */
#ifndef TESTS_FAKE_MMIO_H
#define TESTS_FAKE_MMIO_H

#include "lib/util.h"

struct access {
    char kind; /* 'r' or 'w', upper case: 8 bits instead of 32 */
    uintptr_t addr;
    uint32_t value;
};

/*
 * Set the list of expected accesses.  The list before must have been used up.
 */
void fake_mmio_expect(const struct access *accesses, size_t count);

/* Check that all expected accesses have been made. */
void fake_mmio_done(void);

#define EXPECT(...)                                                            \
    fake_mmio_expect((const struct access[]){__VA_ARGS__},                     \
                     ARRAY_LEN(((const struct access[]){__VA_ARGS__})))

#endif
