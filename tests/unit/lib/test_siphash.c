/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "lib/siphash.h"

enum { INPUT_MAX = 16 };

/* From the authors' table of SipHash-2-4: the hashes of the bytes 0, 1, 2, ...
 * with the key 0, 1, ..., 15, for some lengths. */
static const struct {
    size_t len;
    uint64_t hash;
} published[] = {
    {0, UINT64_C(0x726fdb47dd0e0e31)},  {1, UINT64_C(0x74f839c593dc67fd)},
    {2, UINT64_C(0x0d6c8009d9a94f5a)},  {7, UINT64_C(0xab0200f58b01d137)},
    {8, UINT64_C(0x93f5f5799a932462)},  {9, UINT64_C(0x9e0082df0ba9e4b0)},
    {15, UINT64_C(0xa129ca6149be45e5)},
};

static void test_siphash_gives_the_published_hashes(void **state)
{
    uint8_t key[SIPHASH_KEY_LEN], input[INPUT_MAX];

    (void)state;
    for (uint8_t i = 0; i < SIPHASH_KEY_LEN; i++) {
        key[i] = i;
    }
    for (uint8_t i = 0; i < INPUT_MAX; i++) {
        input[i] = i;
    }
    for (size_t i = 0; i < ARRAY_LEN(published); i++) {
        assert_int_equal(siphash(key, input, published[i].len),
                         published[i].hash);
    }
}
