/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "nvmeof/rdma/rdma_bufs.h"

enum { LKEY = 0x1234 };

struct fixture {
    struct rdma_bufs bufs;
    uint8_t *dram;
    struct nvmf_piece taken[4096][NVMF_MAX_PIECES];
    uint8_t count[4096];
    unsigned int num_taken;
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));

    f->dram = aligned_alloc(4096, RDMA_BUF_BYTES);
    rdma_bufs_init(&f->bufs, f->dram, LKEY);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    free(f->dram);
    free(f);
    return 0;
}

static bool get(struct fixture *f, uint32_t len)
{
    if (!rdma_bufs_get(&f->bufs, len, f->taken[f->num_taken],
                       &f->count[f->num_taken])) {
        return false;
    }
    f->num_taken++;
    return true;
}

static void put_all(struct fixture *f)
{
    while (f->num_taken != 0) {
        f->num_taken--;
        rdma_bufs_put(&f->bufs, f->taken[f->num_taken], f->count[f->num_taken]);
    }
}

static void test_every_size_is_one_piece_while_there_is_room(void **state)
{
    struct fixture *f = *state;
    static const uint32_t lens[] = {1,     511,   512,   4095,   4096,  4097,
                                    32767, 32768, 32769, 131071, 131072};

    for (unsigned int i = 0; i < ARRAY_LEN(lens); i++) {
        assert_true(get(f, lens[i]));
        assert_int_equal(f->count[i], 1);
        assert_int_equal(f->taken[i][0].len_bytes, lens[i]);
        assert_int_equal(f->taken[i][0].handle, LKEY);
        memset(f->taken[i][0].ptr, 0xa5, lens[i]); /* ASan looks on */
    }
    put_all(f);
    assert_int_equal(rdma_bufs_used_bytes(&f->bufs), 0);
}

static void test_pieces_never_overlap(void **state)
{
    struct fixture *f = *state;
    uint32_t lens[] = {4096, 131072, 512, 32768, 65536};
    unsigned int n = 0;

    while (get(f, lens[n % ARRAY_LEN(lens)])) {
        n++;
    }
    assert_true(n > 256);
    for (unsigned int i = 0; i < n; i++) {
        for (unsigned int p = 0; p < f->count[i]; p++) {
            memset(f->taken[i][p].ptr, (int)i & 0xff, f->taken[i][p].len_bytes);
        }
    }
    for (unsigned int i = 0; i < n; i++) {
        for (unsigned int p = 0; p < f->count[i]; p++) {
            const uint8_t *ptr = f->taken[i][p].ptr;

            assert_int_equal(ptr[0], i & 0xff);
            assert_int_equal(ptr[f->taken[i][p].len_bytes - 1], i & 0xff);
        }
    }
    put_all(f);
    assert_int_equal(rdma_bufs_used_bytes(&f->bufs), 0);
}

static void test_large_ones_are_composed_when_their_class_is_empty(void **state)
{
    struct fixture *f = *state;
    uint32_t total = 0;

    for (unsigned int i = 0; i < RDMA_LARGE_COUNT; i++) {
        assert_true(get(f, RDMA_LARGE_LEN));
    }
    assert_true(get(f, RDMA_LARGE_LEN));
    assert_int_equal(f->count[RDMA_LARGE_COUNT], 4);
    for (unsigned int p = 0; p < 4; p++) {
        total += f->taken[RDMA_LARGE_COUNT][p].len_bytes;
    }
    assert_int_equal(total, RDMA_LARGE_LEN);
    put_all(f);
    assert_int_equal(rdma_bufs_used_bytes(&f->bufs), 0);
}

static void test_small_ones_never_take_the_large_ones(void **state)
{
    struct fixture *f = *state;
    unsigned int n = 0;

    while (get(f, 4096)) {
        n++;
    }
    assert_int_equal(n, RDMA_SMALL_COUNT + RDMA_MEDIUM_COUNT);
    assert_true(get(f, RDMA_LARGE_LEN));
    put_all(f);
    assert_int_equal(rdma_bufs_used_bytes(&f->bufs), 0);
}

static void test_a_refused_get_takes_nothing(void **state)
{
    struct fixture *f = *state;
    uint32_t used;

    while (get(f, RDMA_LARGE_LEN)) {
    }
    used = rdma_bufs_used_bytes(&f->bufs);
    assert_false(get(f, RDMA_LARGE_LEN));
    assert_int_equal(rdma_bufs_used_bytes(&f->bufs), used);
    put_all(f);
    assert_int_equal(rdma_bufs_used_bytes(&f->bufs), 0);
    assert_true(get(f, RDMA_LARGE_LEN));
    put_all(f);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(test_every_size_is_one_piece_while_there_is_room),
        T(test_pieces_never_overlap),
        T(test_large_ones_are_composed_when_their_class_is_empty),
        T(test_small_ones_never_take_the_large_ones),
        T(test_a_refused_get_takes_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
