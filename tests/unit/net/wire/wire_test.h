/* SPDX-License-Identifier: BSD-2-Clause */
/* Helpers for the tests of wire formats. */
#ifndef ESSD_TESTS_WIRE_TEST_H
#define ESSD_TESTS_WIRE_TEST_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "lib/util.h"
#include "tests/unit/net/wire/golden.h"

/* A buffer with old bytes, as a pool provides it. */
#define DIRTY(name, len)                                                       \
    uint8_t name[len];                                                         \
    memset(name, 0xa5, sizeof(name))

/* Check that parse() refuses every shorter length.  It gets a copy on the heap,
 * so that ASan detects reads beyond its end. */
#define ASSERT_TRUNCATIONS_REFUSED(parse, parsed, buf, min_len)                \
    do {                                                                       \
        for (size_t cut = 0; cut < (min_len); cut++) {                         \
            uint8_t *copy = malloc(cut != 0 ? cut : 1);                        \
                                                                               \
            assert_non_null(copy);                                             \
            memcpy(copy, (buf), cut);                                          \
            assert_false(parse((parsed), copy, cut));                          \
            free(copy);                                                        \
        }                                                                      \
    } while (0)

#endif
