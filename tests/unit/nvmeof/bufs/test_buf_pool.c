/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "nvmeof/bufs/buf_pool.h"
#include "tests/test_fixture.h"

enum { LKEY = 0x1234, MAX_TAKEN = 8192 };

struct taken {
    struct nvmf_piece pieces[NVMF_MAX_PIECES];
    uint8_t count, owner;
    uint32_t len_bytes;
};

struct fixture {
    struct buf_pool bufs;
    uint8_t *dram;
    struct taken taken[MAX_TAKEN];
    unsigned int num_taken;
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));

    f->dram = aligned_alloc(4096, BUF_POOL_BYTES);
    buf_pool_init(&f->bufs, f->dram, LKEY);
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

/* Take buffers.  @return how many bytes they hold; 0 for none */
static uint32_t get_bufs(struct fixture *f, unsigned int owner, uint32_t len)
{
    struct taken *taken = &f->taken[f->num_taken];
    uint32_t sum = 0;

    assert_true(f->num_taken < MAX_TAKEN);
    taken->owner = (uint8_t)owner;
    taken->len_bytes =
        buf_pool_get(&f->bufs, taken->owner, len, taken->pieces, &taken->count);
    if (taken->len_bytes == 0) {
        return 0;
    }
    assert_in_range(taken->count, 1, NVMF_MAX_PIECES);
    assert_true(taken->len_bytes == len ||
                (taken->len_bytes < len && taken->len_bytes % 4096 == 0));
    for (uint8_t i = 0; i < taken->count; i++) {
        sum += taken->pieces[i].len_bytes;
    }
    assert_int_equal(sum, taken->len_bytes);
    f->num_taken++;
    return taken->len_bytes;
}

static void put_last(struct fixture *f)
{
    const struct taken *taken = &f->taken[--f->num_taken];

    buf_pool_put(&f->bufs, taken->owner, taken->pieces, taken->count);
}

/* Return all buffers, and check that all are free again. */
static void put_all(struct fixture *f)
{
    while (f->num_taken != 0) {
        put_last(f);
    }
    assert_int_equal(buf_pool_used_bytes(&f->bufs), 0);
    assert_int_equal(f->bufs.classes[0].kept, BUF_RESERVE * NVMF_BUF_OWNERS);
    for (unsigned int i = 0; i < NVMF_BUF_OWNERS; i++) {
        for (unsigned int c = 0; c < BUF_CLASSES; c++) {
            assert_int_equal(f->bufs.held[i][c], 0);
        }
    }
}

static unsigned int get_many(struct fixture *f, unsigned int owner,
                             uint32_t len)
{
    unsigned int n = 0;

    while (get_bufs(f, owner, len) != 0) {
        n++;
    }
    return n;
}

static void test_every_size_is_one_piece_while_buffers_are_free(void **state)
{
    struct fixture *f = *state;
    static const uint32_t lens[] = {1,     511,   512,   4095,   4096,  4097,
                                    32767, 32768, 32769, 131071, 131072};

    for (unsigned int i = 0; i < ARRAY_LEN(lens); i++) {
        assert_int_equal(get_bufs(f, 0, lens[i]), lens[i]);
        assert_int_equal(f->taken[i].count, 1);
        assert_int_equal(f->taken[i].pieces[0].handle, LKEY);
        /* ASan checks the bounds. */
        memset(f->taken[i].pieces[0].ptr, 0xa5, lens[i]);
    }
    put_all(f);
}

static void test_one_mebibyte_uses_eight_large_buffers(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(get_bufs(f, 0, NVMF_MAX_TRANSFER), NVMF_MAX_TRANSFER);
    assert_int_equal(f->taken[0].count, 8);
    put_all(f);
}

static void test_pieces_never_overlap(void **state)
{
    struct fixture *f = *state;
    uint32_t lens[] = {4096, 131072, 512, 32768, 65536, 1048576, 8192};
    unsigned int refused = 0;

    for (unsigned int n = 0; refused < 3 * NVMF_BUF_OWNERS; n++) {
        refused +=
            get_bufs(f, n % NVMF_BUF_OWNERS, lens[n % ARRAY_LEN(lens)]) == 0;
    }
    assert_true(f->num_taken > 500);
    for (unsigned int i = 0; i < f->num_taken; i++) {
        for (unsigned int p = 0; p < f->taken[i].count; p++) {
            memset(f->taken[i].pieces[p].ptr, (int)i & 0xff,
                   f->taken[i].pieces[p].len_bytes);
        }
    }
    for (unsigned int i = 0; i < f->num_taken; i++) {
        for (unsigned int p = 0; p < f->taken[i].count; p++) {
            const uint8_t *ptr = f->taken[i].pieces[p].ptr;

            assert_int_equal(ptr[0], i & 0xff);
            assert_int_equal(ptr[f->taken[i].pieces[p].len_bytes - 1],
                             i & 0xff);
        }
    }
    put_all(f);
}

/*
 * While no other owner holds buffers, one owner gets its reserve and a fifth of
 * the shared buffers of each class.
 */
static void test_one_owner_gets_at_most_its_share(void **state)
{
    struct fixture *f = *state;

    get_many(f, 0, 4096);
    assert_int_equal(f->bufs.held[0][0],
                     BUF_RESERVE +
                         (BUF_SMALL_COUNT - BUF_RESERVE * NVMF_BUF_OWNERS + 4) /
                             5);
    get_many(f, 0, 131072);
    assert_int_equal(f->bufs.held[0][2], (BUF_LARGE_COUNT + 4) / 5);
    assert_true(f->bufs.held[0][1] <= (BUF_MEDIUM_COUNT + 4) / 5);
    assert_true(buf_pool_used_bytes(&f->bufs) < BUF_POOL_BYTES / 4);
    put_all(f);
}

/*
 * All owners but the last take buffers until they get no more, and keep them.
 */
static void test_an_owner_has_its_reserve_whatever_others_hold(void **state)
{
    struct fixture *f = *state;
    uint32_t lens[] = {131072, 32768, 8192, 4096, NVMF_MAX_TRANSFER};

    for (unsigned int owner = 0; owner < NVMF_BUF_OWNERS - 1; owner++) {
        for (unsigned int i = 0; i < ARRAY_LEN(lens); i++) {
            get_many(f, owner, lens[(owner + i) % ARRAY_LEN(lens)]);
        }
    }
    for (unsigned int c = 1; c < BUF_CLASSES; c++) {
        assert_int_equal(f->bufs.classes[c].free_count, 0);
    }
    /* The last owner asks for short buffers first, and then for a long one. */
    for (unsigned int i = 0; i < BUF_RESERVE; i++) {
        assert_int_equal(get_bufs(f, NVMF_BUF_OWNERS - 1, 4096), 4096);
    }
    assert_int_equal(get_bufs(f, NVMF_BUF_OWNERS - 1, 1), 0);
    for (unsigned int i = 0; i < BUF_RESERVE; i++) {
        put_last(f);
    }
    assert_int_equal(get_bufs(f, NVMF_BUF_OWNERS - 1, NVMF_MAX_TRANSFER),
                     BUF_RESERVE_LONG * 4096);
    assert_int_equal(get_bufs(f, NVMF_BUF_OWNERS - 1, 131072), 0);
    for (unsigned int i = 0; i < BUF_RESERVE - BUF_RESERVE_LONG; i++) {
        assert_int_equal(get_bufs(f, NVMF_BUF_OWNERS - 1, 4096), 4096);
    }
    assert_int_equal(f->bufs.classes[0].free_count, 0);
    put_all(f);
}

/*
 * A long command whose owner has one small buffer left waits: a window of 4096
 * bytes has no room for a block of 4096 bytes with its metadata.
 */
static void test_every_window_has_room_for_a_block_with_metadata(void **state)
{
    struct fixture *f = *state;
    enum { BLOCK = 4096 + 8, OWNER = NVMF_BUF_OWNERS - 1 };

    for (unsigned int owner = 0; owner < OWNER; owner++) {
        get_many(f, owner, 131072);
        get_many(f, owner, 32768);
        get_many(f, owner, 4096);
    }
    for (unsigned int held = 0; held < BUF_RESERVE; held++) {
        bool has_room = BUF_RESERVE_LONG - (int)held >= 2;
        uint32_t most =
            (uint32_t)(BUF_RESERVE_LONG - (int)held) * BUF_SMALL_LEN;

        assert_int_equal(get_bufs(f, OWNER, BLOCK), has_room ? BLOCK : 0);
        if (has_room) {
            put_last(f);
            assert_int_equal(get_bufs(f, OWNER, 1048320), most);
            put_last(f);
        }
        assert_int_equal(get_bufs(f, OWNER, 4096), 4096);
    }
    put_all(f);
}

static void test_an_owner_that_holds_nothing_always_gets_a_buffer(void **state)
{
    struct fixture *f = *state;
    uint64_t random = 1;

    for (unsigned int step = 0; step < 200000; step++) {
        unsigned int owner;
        const uint16_t *held;
        uint32_t len;

        random = random * UINT64_C(6364136223846793005) + 1;
        owner = (unsigned int)(random >> 33) % NVMF_BUF_OWNERS;
        held = f->bufs.held[owner];
        len = 1 + (uint32_t)(random >> 40) % NVMF_MAX_TRANSFER;
        if (random >> 62 == 0) {
            len = 1 + len % 4096;
        }
        if (f->num_taken > 0 && (random >> 36) % 16 < 7) {
            put_last(f);
        } else if (f->num_taken < MAX_TAKEN) {
            bool is_empty = held[0] == 0 && held[1] == 0 && held[2] == 0;

            assert_true(get_bufs(f, owner, len) != 0 || !is_empty);
        }
    }
    put_all(f);
}

static void test_long_data_gets_smaller_buffers_when_the_large_share_is_used(
    void **state)
{
    struct fixture *f = *state;

    while (f->bufs.held[7][2] < (BUF_LARGE_COUNT + 4) / 5) {
        assert_int_equal(get_bufs(f, 7, BUF_LARGE_LEN), BUF_LARGE_LEN);
        assert_int_equal(f->taken[f->num_taken - 1].count, 1);
    }
    assert_int_equal(get_bufs(f, 7, BUF_LARGE_LEN), BUF_LARGE_LEN);
    assert_int_equal(f->taken[f->num_taken - 1].count, 4);
    put_all(f);
}

static void test_short_commands_never_take_large_buffers(void **state)
{
    struct fixture *f = *state;

    for (unsigned int owner = 0; owner < NVMF_BUF_OWNERS; owner++) {
        get_many(f, owner, 4096);
    }
    assert_int_equal(f->bufs.classes[0].free_count, 0);
    assert_int_equal(f->bufs.classes[1].free_count, 0);
    assert_int_equal(f->bufs.classes[2].free_count, BUF_LARGE_COUNT);
    put_all(f);
}

static void test_a_refused_get_takes_nothing(void **state)
{
    struct fixture *f = *state;
    uint32_t used;

    get_many(f, 3, BUF_LARGE_LEN);
    used = buf_pool_used_bytes(&f->bufs);
    assert_int_equal(get_bufs(f, 3, BUF_LARGE_LEN), 0);
    assert_int_equal(buf_pool_used_bytes(&f->bufs), used);
    put_all(f);
    assert_int_equal(get_bufs(f, 3, BUF_LARGE_LEN), BUF_LARGE_LEN);
    put_all(f);
}

TEST_FIXTURE(setup, teardown)
