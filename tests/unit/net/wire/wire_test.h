/* SPDX-License-Identifier: BSD-2-Clause */
/* What every wire format test needs. */
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

/* A buffer as they arrive from a pool: dirty. */
#define DIRTY(name, len)                                                       \
    uint8_t name[len];                                                         \
    memset(name, 0xa5, sizeof(name))

/* No shorter `len` parses.  Each try has a heap copy, which ASan guards. */
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
