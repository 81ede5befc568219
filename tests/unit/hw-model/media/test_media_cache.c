/* SPDX-License-Identifier: BSD-2-Clause */
/* The data structure of the cache, without the engine. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "hw-model/media/media_cache.h"
#include "tests/test_fixture.h"

enum { LINES = 8, MAX_PARTS = 4 };

static int setup(void **state)
{
    struct media_cache *cache = calloc(1, sizeof(*cache));
    uint64_t bytes = LINES * CACHE_LINE_BYTES;
    size_t memory = (media_cache_memory_bytes(bytes) + 4095) / 4096 * 4096;

    media_cache_init(cache, aligned_alloc(4096, memory), bytes);
    *state = cache;
    return 0;
}

static int teardown(void **state)
{
    struct media_cache *cache = *state;

    media_cache_check(cache);
    free(cache->data);
    free(cache);
    return 0;
}

static void put_sectors(struct media_cache *cache, uint32_t key, uint8_t mask,
                        uint8_t byte)
{
    struct media_line *line = media_cache_prepare(cache, key, mask);

    assert_non_null(line);
    for (unsigned int i = 0; i < CACHE_SECTORS; i++) {
        if (mask >> i & 1) {
            memset(media_line_data(cache, line) + i * 512, byte, 512);
        }
    }
    media_cache_mark_dirty(cache, line, mask);
    media_cache_check(cache);
}

static uint8_t part_byte(const struct media_cache *cache,
                         const struct media_cache_part *part, unsigned int i)
{
    return cache->data[part->page * (size_t)CACHE_LINE_BYTES + i * 512];
}

static void test_cache_run_extends_over_full_lines_both_ways(void **state)
{
    struct media_cache *cache = *state;
    struct media_cache_part parts[MAX_PARTS];
    uint64_t offset;

    put_sectors(cache, 11, 0xff, 2);
    put_sectors(cache, 10, 0xe0, 1); /* its last three sectors */
    put_sectors(cache, 12, 0x03, 3); /* its first two */
    put_sectors(cache, 14, 0xff, 4); /* not adjacent */
    assert_int_equal(media_cache_start(cache, media_cache_oldest(cache), parts,
                                       MAX_PARTS, &offset),
                     3);
    assert_int_equal(offset, 10 * 4096 + 5 * 512);
    assert_int_equal(parts[0].mask, 0xe0);
    assert_int_equal(parts[1].mask, 0xff);
    assert_int_equal(parts[2].mask, 0x03);
    for (unsigned int i = 0; i < 3; i++) {
        media_cache_finish(cache, &parts[i], true);
    }
    assert_int_equal(cache->used_lines, 1);
    assert_int_equal(media_cache_oldest(cache)->key, 14);
}

static void test_cache_run_is_bounded_and_has_the_line_asked_for(void **state)
{
    struct media_cache *cache = *state;
    struct media_cache_part parts[MAX_PARTS];
    uint64_t offset;
    bool has = false;

    for (uint32_t key = 0; key < LINES; key++) {
        put_sectors(cache, key, 0xff, (uint8_t)key);
    }
    assert_int_equal(media_cache_start(cache, media_cache_find(cache, 6), parts,
                                       MAX_PARTS, &offset),
                     MAX_PARTS);
    for (unsigned int i = 0; i < MAX_PARTS; i++) {
        has |= part_byte(cache, &parts[i], 0) == 6;
        assert_int_equal(part_byte(cache, &parts[i], 0), offset / 4096 + i);
    }
    assert_true(has);
    for (unsigned int i = 0; i < MAX_PARTS; i++) {
        media_cache_finish(cache, &parts[i], true);
    }
}

static void test_cache_lines_with_holes_take_two_runs(void **state)
{
    struct media_cache *cache = *state;
    struct media_cache_part part;
    uint64_t offset;

    put_sectors(cache, 5, 0x81, 1);
    assert_int_equal(
        media_cache_start(cache, media_cache_find(cache, 5), &part, 1, &offset),
        1);
    assert_int_equal(part.mask, 0x01);
    assert_int_equal(media_line_valid(media_cache_find(cache, 5)), 0x81);
    media_cache_finish(cache, &part, true);
    assert_int_equal(
        media_cache_start(cache, media_cache_find(cache, 5), &part, 1, &offset),
        1);
    assert_int_equal(part.mask, 0x80);
    assert_int_equal(offset, 5 * 4096 + 7 * 512);
    media_cache_finish(cache, &part, true);
    assert_null(media_cache_find(cache, 5));
}

static void test_cache_copies_on_write_in_flight(void **state)
{
    struct media_cache *cache = *state;
    struct media_cache_part part;
    struct media_line *line;
    uint64_t offset;

    put_sectors(cache, 5, 0x0f, 1);
    media_cache_start(cache, media_cache_find(cache, 5), &part, 1, &offset);
    put_sectors(cache, 5, 0x02, 9);
    line = media_cache_find(cache, 5);
    assert_int_not_equal(line->page, part.page);
    assert_int_equal(part_byte(cache, &part, 1), 1);
    assert_int_equal(media_line_data(cache, line)[0], 1);
    assert_int_equal(media_line_data(cache, line)[512], 9);
    assert_int_equal(media_line_data(cache, line)[1024], 1);
    media_cache_finish(cache, &part, true);
    assert_int_equal(media_line_valid(line), 0x02);
    assert_ptr_equal(media_cache_oldest(cache), line);
}

static void test_cache_failure_keeps_the_newest_of_both(void **state)
{
    struct media_cache *cache = *state;
    struct media_cache_part part;
    struct media_line *line;
    uint64_t offset;
    uint32_t epoch;

    put_sectors(cache, 5, 0x0f, 1);
    epoch = media_cache_close_epoch(cache);
    media_cache_start(cache, media_cache_find(cache, 5), &part, 1, &offset);
    put_sectors(cache, 5, 0x02, 9);
    media_cache_finish(cache, &part, false);
    line = media_cache_find(cache, 5);
    assert_int_equal(line->dirty, 0x0f);
    assert_int_equal(media_line_data(cache, line)[0], 1);
    assert_int_equal(media_line_data(cache, line)[512], 9);
    assert_false(media_cache_is_drained(cache, epoch));
    media_cache_start(cache, line, &part, 1, &offset);
    media_cache_finish(cache, &part, true);
    assert_true(media_cache_is_drained(cache, epoch));
}

static void test_cache_refuses_when_full_and_changes_nothing(void **state)
{
    struct media_cache *cache = *state;
    struct media_cache_part part;
    uint64_t offset;

    for (uint32_t key = 0; key < LINES; key++) {
        put_sectors(cache, 2 * key, 0xff, 1);
    }
    assert_null(media_cache_prepare(cache, 99, 0xff));
    /* The line exists already. */
    assert_non_null(media_cache_prepare(cache, 4, 0x01));
    media_cache_start(cache, media_cache_find(cache, 4), &part, 1, &offset);
    /* There is no page to copy to. */
    assert_null(media_cache_prepare(cache, 4, 0x01));
    media_cache_check(cache);
    media_cache_finish(cache, &part, true);
    put_sectors(cache, 99, 0xff, 1);
}

static void test_cache_epochs_wait_only_for_earlier_writes(void **state)
{
    struct media_cache *cache = *state;
    struct media_cache_part part;
    uint32_t first, second;
    uint64_t offset;

    assert_true(media_cache_is_drained(cache, media_cache_close_epoch(cache)));
    put_sectors(cache, 1, 0xff, 1);
    first = media_cache_close_epoch(cache);
    /* Nothing new was written. */
    assert_int_equal(media_cache_close_epoch(cache), first);
    /* This is still a line of the first epoch. */
    put_sectors(cache, 1, 0x01, 2);
    put_sectors(cache, 3, 0xff, 1);
    second = media_cache_close_epoch(cache);
    media_cache_start(cache, media_cache_find(cache, 1), &part, 1, &offset);
    assert_false(media_cache_is_drained(cache, first));
    put_sectors(cache, 1, 0x01, 3); /* this belongs to the third epoch */
    media_cache_finish(cache, &part, true);
    assert_true(media_cache_is_drained(cache, first));
    assert_false(media_cache_is_drained(cache, second));
    media_cache_start(cache, media_cache_find(cache, 3), &part, 1, &offset);
    media_cache_finish(cache, &part, true);
    assert_true(media_cache_is_drained(cache, second));
    assert_non_null(media_cache_find(cache, 1));
}

static void test_cache_epoch_numbers_run_out_safely(void **state)
{
    struct media_cache *cache = *state;
    struct media_cache_part part;
    uint64_t offset;
    uint32_t epoch = 0;

    put_sectors(cache, 1, 0xff, 1);
    for (unsigned int i = 0; i < 3 * CACHE_EPOCHS; i++) {
        epoch = media_cache_close_epoch(cache);
        put_sectors(cache, 3, 0xff, 1);
        media_cache_start(cache, media_cache_find(cache, 3), &part, 1, &offset);
        media_cache_finish(cache, &part, true);
        assert_false(media_cache_is_drained(cache, epoch));
    }
    media_cache_start(cache, media_cache_find(cache, 1), &part, 1, &offset);
    media_cache_finish(cache, &part, true);
    assert_true(media_cache_is_drained(cache, epoch));
}

WITH_FIXTURE(NULL, NULL)
static void test_cache_of_size_0_holds_nothing(void **state)
{
    struct media_cache cache;

    (void)state;
    assert_int_equal(media_cache_memory_bytes(0), 0);
    media_cache_init(&cache, NULL, 0);
    assert_null(media_cache_prepare(&cache, 0, 1));
    assert_false(media_cache_overlaps(&cache, 0, 100));
    assert_true(
        media_cache_is_drained(&cache, media_cache_close_epoch(&cache)));
}

TEST_FIXTURE(setup, teardown)
