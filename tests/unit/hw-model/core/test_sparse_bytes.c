/* SPDX-License-Identifier: BSD-2-Clause */
/* Sparse bytes, compared with the same bytes in plain memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "hw-model/core/sparse_bytes.h"
#include "lib/random.h"

enum { SIZE = 5 * 4096 + 100, LONGEST = 9000, STEPS = 3000 };

static void test_new_bytes_are_zero_and_take_no_memory(void **state)
{
    struct sparse_bytes sparse;
    uint8_t read[256], zeros[256] = {0};

    (void)state;
    sparse_bytes_init(&sparse, SIZE);
    memset(read, 0xff, sizeof(read));
    sparse_bytes_read(&sparse, 4000, read, sizeof(read));
    assert_memory_equal(read, zeros, sizeof(read));
    for (unsigned int i = 0; i < 6; i++) {
        assert_null(sparse.pages[i]);
    }
    sparse_bytes_end(&sparse);
}

static void test_zeros_give_the_memory_back(void **state)
{
    struct sparse_bytes sparse;
    uint8_t bytes[5000];

    (void)state;
    memset(bytes, 0x5a, sizeof(bytes));
    sparse_bytes_init(&sparse, SIZE);
    sparse_bytes_write(&sparse, 1000, bytes, sizeof(bytes));
    assert_non_null(sparse.pages[0]);
    assert_non_null(sparse.pages[1]);
    sparse_bytes_zero(&sparse, 1000, 3096);
    assert_null(sparse.pages[0]);
    memset(bytes, 0, sizeof(bytes));
    sparse_bytes_write(&sparse, 4096, bytes, 1904);
    assert_null(sparse.pages[1]);
    sparse_bytes_end(&sparse);
}

static void test_random_changes_read_back_like_plain_memory(void **state)
{
    uint8_t *plain = calloc(1, SIZE), *read = malloc(SIZE);
    uint8_t buf[LONGEST];
    struct sparse_bytes sparse;
    uint64_t seed = 1;

    (void)state;
    assert_true(plain != NULL && read != NULL);
    sparse_bytes_init(&sparse, SIZE);
    for (unsigned int i = 0; i < STEPS; i++) {
        size_t len = random_next(&seed) % LONGEST;
        uint64_t offset = random_next(&seed) % (SIZE - len + 1);
        uint64_t kind = random_next(&seed) % 4;

        if (kind == 0) {
            memset(plain + offset, 0, len);
            sparse_bytes_zero(&sparse, offset, len);
        } else {
            /* Long runs of zeros between other bytes. */
            for (size_t n = 0; n < len; n++) {
                buf[n] = random_next(&seed) % (1u << (4 * kind)) == 0;
            }
            memcpy(plain + offset, buf, len);
            sparse_bytes_write(&sparse, offset, buf, len);
        }
        offset = random_next(&seed) % SIZE;
        len = random_next(&seed) % (SIZE - offset + 1);
        sparse_bytes_read(&sparse, offset, read, len);
        assert_memory_equal(read, plain + offset, len);
    }
    sparse_bytes_end(&sparse);
    free(read);
    free(plain);
}
