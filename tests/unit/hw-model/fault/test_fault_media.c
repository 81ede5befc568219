/* SPDX-License-Identifier: BSD-2-Clause */
/* Media faults above a storage that ends requests when told to. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "hw-model/fault/fault_media.h"
#include "tests/test_fixture.h"
#include "tests/unit/hw-model/fault/fault_bed.h"

enum {
    IDS = 8,
    MS = 1000000,
    UNFINISHED = 1,
    CACHE_ID = 4, /* the only id of requests that write data of the cache */
};

struct bed {
    struct fault_bed base;
    struct fault_media media;
    struct media_backend top; /* what the media engine calls */
    bool is_below[IDS];       /* the storage works on the request */
    int result[IDS];          /* UNFINISHED until it has ended */
    bool is_starting;         /* inside a call of `top` */
    unsigned int corrected;   /* errors of the cache */
    unsigned int lost;
};

static void start_below(void *ctx, uint32_t id)
{
    struct bed *bed = ctx;

    assert_false(bed->is_below[id]);
    bed->is_below[id] = true;
}

static void below_readv(void *ctx, uint32_t id, uint64_t offset,
                        const struct iovec *iov, unsigned int niov)
{
    (void)offset;
    (void)iov;
    (void)niov;
    start_below(ctx, id);
}

static void below_zeroes(void *ctx, uint32_t id, uint64_t offset, uint64_t len,
                         bool may_unmap)
{
    (void)offset;
    (void)len;
    (void)may_unmap;
    start_below(ctx, id);
}

static void below_flush(void *ctx, uint32_t id)
{
    start_below(ctx, id);
}

static void bed_done(void *ctx, uint32_t id, int result)
{
    struct bed *bed = ctx;

    assert_false(bed->is_starting);
    assert_int_equal(bed->result[id], UNFINISHED);
    bed->result[id] = result;
}

static void note_cache_error(void *ctx, bool is_lost)
{
    struct bed *bed = ctx;

    bed->corrected += !is_lost;
    bed->lost += is_lost;
}

static int set_up(void **state)
{
    struct bed *bed = calloc(1, sizeof(*bed));

    assert_non_null(bed);
    fault_bed_init(&bed->base);
    for (unsigned int i = 0; i < IDS; i++) {
        bed->result[i] = UNFINISHED;
    }
    fault_media_init(&bed->media, &(struct fault_media_config){
                                      .table = &bed->base.table,
                                      .below =
                                          {
                                              .ctx = bed,
                                              .readv = below_readv,
                                              .writev = below_readv,
                                              .write_zeroes = below_zeroes,
                                              .flush = below_flush,
                                          },
                                      .ctx = bed,
                                      .first_cache_id = CACHE_ID,
                                      .end_cache_id = CACHE_ID + 1,
                                      .cache_error = note_cache_error,
                                      .done = bed_done,
                                      .now_ns = fault_bed_now_ns,
                                      .set_timer = fault_bed_set_timer,
                                      .power_cut = fault_bed_power_cut,
                                  });
    bed->top = fault_media_backend(&bed->media);
    *state = bed;
    return 0;
}

static int tear_down(void **state)
{
    free(*state);
    return 0;
}

static void add_rule(struct bed *bed, const char *text)
{
    fault_bed_add_rule(&bed->base, text);
}

static void expire_timer(void *media)
{
    fault_media_timer(media);
}

static void wait_ns(struct bed *bed, uint64_t ns)
{
    fault_bed_wait_ns(&bed->base, ns, expire_timer, &bed->media);
}

/* Start a read or write of the 4 KiB with this number. */
static void start_request(struct bed *bed, uint32_t id, bool is_write,
                          uint64_t page)
{
    static uint8_t buffer[4096];
    struct iovec iov[2] = {{buffer, 1024}, {buffer + 1024, 3072}};

    bed->is_starting = true;
    (is_write ? bed->top.writev : bed->top.readv)(bed->top.ctx, id, page * 4096,
                                                  iov, 2);
    bed->is_starting = false;
}

static void end_below(struct bed *bed, uint32_t id, int result)
{
    assert_true(bed->is_below[id]);
    bed->is_below[id] = false;
    fault_media_below_done(&bed->media, id, result);
}

static void test_a_lost_word_of_the_cache_is_not_written(void **state)
{
    struct bed *bed = *state;

    add_rule(bed, "id=1 site=media do=bits argument=2 first=4096 times=1");
    start_request(bed, CACHE_ID, true, 1);
    assert_false(bed->is_below[CACHE_ID]);
    assert_int_equal(bed->result[CACHE_ID], UNFINISHED);
    wait_ns(bed, 0);
    assert_int_equal(bed->result[CACHE_ID], -EIO);
    assert_int_equal(bed->lost, 1);
    /* The next attempt finds the word right. */
    bed->result[CACHE_ID] = UNFINISHED;
    start_request(bed, CACHE_ID, true, 1);
    end_below(bed, CACHE_ID, 0);
    assert_int_equal(bed->result[CACHE_ID], 0);
    assert_int_equal(bed->lost, 1);
    assert_int_equal(bed->corrected, 0);
}

static void test_one_wrong_bit_of_the_cache_is_corrected(void **state)
{
    struct bed *bed = *state;

    add_rule(bed, "id=1 site=media do=bits argument=1");
    start_request(bed, CACHE_ID, true, 1);
    end_below(bed, CACHE_ID, 0);
    assert_int_equal(bed->result[CACHE_ID], 0);
    assert_int_equal(bed->corrected, 1);
    /* Other requests do not read the cache. */
    start_request(bed, CACHE_ID - 1, true, 1);
    start_request(bed, CACHE_ID + 1, true, 1);
    start_request(bed, 0, false, 1);
    assert_int_equal(bed->corrected, 1);
    /* A host's read of the cache does. */
    assert_int_equal(fault_media_cache_bits(&bed->media, 0, 512), 1);
    assert_int_equal(bed->lost, 0);
}

/* A rule for writes acts, too, on data of the cache that is right. */
static void test_a_rule_for_writes_acts_on_data_of_the_cache(void **state)
{
    struct bed *bed = *state;

    add_rule(bed, "id=1 site=media do=bits argument=1");
    add_rule(bed, "id=2 site=media do=error ops=2");
    start_request(bed, CACHE_ID, true, 1);
    wait_ns(bed, 0);
    assert_int_equal(bed->result[CACHE_ID], -EIO);
    assert_int_equal(bed->corrected, 1);
}

static void test_media_requests_pass_without_rules(void **state)
{
    struct bed *bed = *state;

    start_request(bed, 0, false, 0);
    start_request(bed, 1, true, 0);
    bed->top.write_zeroes(bed->top.ctx, 2, 0, 4096, true);
    bed->top.flush(bed->top.ctx, 3);
    end_below(bed, 0, 0);
    end_below(bed, 1, -ENOSPC);
    end_below(bed, 2, 0);
    end_below(bed, 3, 0);
    assert_int_equal(bed->result[0], 0);
    assert_int_equal(bed->result[1], -ENOSPC);
    assert_int_equal(bed->result[2], 0);
    assert_int_equal(bed->result[3], 0);
}

static void test_media_request_fails_without_reaching_the_storage(void **state)
{
    struct bed *bed = *state;

    add_rule(bed, "id=1 site=media do=error ops=1 first=8192 end=12288");
    start_request(bed, 0, false, 1);
    start_request(bed, 1, false, 2);
    start_request(bed, 2, true, 2);
    assert_true(bed->is_below[0]);
    assert_false(bed->is_below[1]);
    assert_true(bed->is_below[2]);
    assert_int_equal(bed->result[1], UNFINISHED);
    wait_ns(bed, 0);
    assert_int_equal(bed->result[1], -EIO);
    /* The id serves the next request. */
    bed->result[1] = UNFINISHED;
    start_request(bed, 1, false, 1);
    end_below(bed, 1, 0);
    assert_int_equal(bed->result[1], 0);
}

static void test_media_zeroes_and_flush_can_fail(void **state)
{
    struct bed *bed = *state;

    add_rule(bed, "id=1 site=media do=error ops=12");
    bed->top.write_zeroes(bed->top.ctx, 0, 0, 4096, false);
    bed->top.flush(bed->top.ctx, 1);
    wait_ns(bed, 0);
    assert_int_equal(bed->result[0], -EIO);
    assert_int_equal(bed->result[1], -EIO);
}

static void test_media_request_takes_at_least_the_delay(void **state)
{
    struct bed *bed = *state;

    add_rule(bed, "id=1 site=media do=delay argument=5000000");
    start_request(bed, 0, false, 0);
    start_request(bed, 1, false, 0);
    end_below(bed, 0, 0);
    wait_ns(bed, 5 * MS - 1);
    assert_int_equal(bed->result[0], UNFINISHED);
    wait_ns(bed, 1);
    assert_int_equal(bed->result[0], 0);
    /* The storage took longer than the delay. */
    wait_ns(bed, MS);
    end_below(bed, 1, -EROFS);
    assert_int_equal(bed->result[1], -EROFS);
}

static void test_media_delay_beyond_all_time_never_ends(void **state)
{
    struct bed *bed = *state;

    add_rule(bed,
             "id=1 site=media do=delay argument=18446744073709551615 times=1");
    wait_ns(bed, MS);
    start_request(bed, 0, false, 0);
    end_below(bed, 0, 0);
    wait_ns(bed, MS);
    assert_int_equal(bed->result[0], UNFINISHED);
    fault_media_release(&bed->media);
    assert_int_equal(bed->result[0], 0);
}

static void test_media_stuck_request_ends_with_its_rule(void **state)
{
    struct bed *bed = *state;

    add_rule(bed, "id=1 site=media do=stuck times=1");
    add_rule(bed, "id=2 site=media do=stuck times=1");
    start_request(bed, 0, false, 0);
    start_request(bed, 1, false, 0);
    end_below(bed, 0, 0);
    end_below(bed, 1, 0);
    wait_ns(bed, 1000ull * MS);
    assert_int_equal(bed->result[0], UNFINISHED);
    assert_true(fault_table_turn(&bed->base.table, 1, false));
    fault_media_timer(&bed->media);
    assert_int_equal(bed->result[0], 0);
    assert_int_equal(bed->result[1], UNFINISHED);
    assert_true(fault_table_remove(&bed->base.table, 2));
    fault_media_timer(&bed->media);
    assert_int_equal(bed->result[1], 0);
}

static void test_media_release_ends_all_that_is_held(void **state)
{
    struct bed *bed = *state;

    add_rule(bed, "id=1 site=media do=stuck times=2");
    add_rule(bed, "id=2 site=media do=error");
    start_request(bed, 0, false, 0);
    start_request(bed, 1, false, 0);
    start_request(bed, 2, false, 0);
    end_below(bed, 0, 0);
    fault_media_release(&bed->media);
    assert_int_equal(bed->result[0], 0);
    assert_int_equal(bed->result[2], -EIO);
    assert_int_equal(bed->result[1], UNFINISHED);
    end_below(bed, 1, 0); /* no longer held */
    assert_int_equal(bed->result[1], 0);
    assert_int_equal(bed->base.deadline_ns, UINT64_MAX);
}

static void test_media_rule_cuts_the_power_before_the_request(void **state)
{
    struct bed *bed = *state;

    add_rule(bed, "id=1 site=media do=power-cut ops=2 nth=2");
    start_request(bed, 0, true, 0);
    assert_true(bed->base.has_power);
    start_request(bed, 1, true, 0);
    assert_false(bed->base.has_power);
    assert_false(bed->is_below[1]);
}

TEST_FIXTURE(set_up, tear_down)
