/* SPDX-License-Identifier: BSD-2-Clause */
/* The time that DMA takes in the native process. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "firmware/native/dma_time.h"
#include "lib/random.h"
#include "lib/util.h"
#include "tests/test_fixture.h"

enum {
    LEN = 1000,
    BUS_PS = 125000,   /* of LEN bytes at 64 Gb/s */
    MEMORY_PS = 80000, /* of LEN bytes at 100 Gb/s */
    LATENCY_PS = 150000,
    BEGIN_PS = 2 * DMA_WINDOW_PS,
    FULL = DMA_WINDOW_PS / MEMORY_PS * LEN, /* bytes that fill a window */
};

/* A failed assertion ends the statement in which the test expects it. */
void assert_failed(const char *expression, const char *file, int line)
{
    mock_assert(0, expression, file, line);
    abort();
}

static struct dma_time dma;
static struct dma_engine engine, other;

static int set_up(void **state)
{
    (void)state;
    dma = (struct dma_time){.settings = {.bus_mbps = 64000,
                                         .bus_ns = 100,
                                         .memory_mbps = 100000,
                                         .memory_ns = 50}};
    engine = other = (struct dma_engine){0};
    return 0;
}

TEST_FIXTURE(set_up, NULL)

static uint64_t pass_bytes(struct dma_engine *by, uint64_t begin_ps)
{
    return dma_time_pass(&dma, by, begin_ps, LEN);
}

static void test_a_transfer_takes_both_latencies_and_the_slower_speed(
    void **state)
{
    (void)state;
    assert_int_equal(pass_bytes(&engine, BEGIN_PS),
                     BEGIN_PS + BUS_PS + LATENCY_PS);
    assert_int_equal(dma.busy_ps, MEMORY_PS);
    dma.settings.memory_mbps = 32000;
    assert_int_equal(pass_bytes(&other, 10 * BEGIN_PS),
                     10 * BEGIN_PS + 2 * BUS_PS + LATENCY_PS);
}

static void test_transfers_of_an_engine_follow_each_other(void **state)
{
    (void)state;
    (void)pass_bytes(&engine, BEGIN_PS);
    assert_int_equal(pass_bytes(&engine, BEGIN_PS),
                     BEGIN_PS + 2 * BUS_PS + LATENCY_PS);
    assert_int_equal(pass_bytes(&other, BEGIN_PS),
                     BEGIN_PS + BUS_PS + LATENCY_PS);
}

static void test_engines_wait_for_a_memory_that_is_full(void **state)
{
    (void)state;
    (void)dma_time_pass(&dma, &engine, BEGIN_PS, FULL);
    assert_int_equal(pass_bytes(&other, BEGIN_PS),
                     BEGIN_PS + DMA_WINDOW_PS + MEMORY_PS + LATENCY_PS);
}

static void test_a_later_transfer_does_not_delay_an_earlier_one(void **state)
{
    (void)state;
    (void)dma_time_pass(&dma, &engine, 5 * BEGIN_PS, FULL);
    assert_int_equal(pass_bytes(&other, BEGIN_PS),
                     BEGIN_PS + BUS_PS + LATENCY_PS);
}

static void test_flash_data_use_the_memory_little_by_little(void **state)
{
    (void)state;
    dma_time_use(&dma, BEGIN_PS, FULL);
    assert_int_equal(dma.busy_ps, DMA_WINDOW_PS);
    assert_int_equal(dma.windows[2].busy_ps, DMA_WINDOW_PS / DMA_SPREAD);
    assert_int_equal(pass_bytes(&other, BEGIN_PS),
                     BEGIN_PS + BUS_PS + LATENCY_PS);
}

/* A window has the place of an earlier one, but not its use. */
static void test_the_memory_is_free_again_when_the_windows_wrap(void **state)
{
    uint64_t wrap_ps = (uint64_t)DMA_WINDOWS * DMA_WINDOW_PS;

    (void)state;
    (void)dma_time_pass(&dma, &engine, BEGIN_PS, FULL);
    assert_int_equal(pass_bytes(&other, BEGIN_PS + wrap_ps),
                     BEGIN_PS + wrap_ps + BUS_PS + LATENCY_PS);
    assert_int_equal(dma.windows[2].busy_ps, MEMORY_PS);
}

/* The place of a window that is too early has been used again. */
static void test_a_transfer_before_all_windows_is_refused(void **state)
{
    (void)state;
    (void)pass_bytes(&engine, BEGIN_PS + (uint64_t)DMA_WINDOWS * DMA_WINDOW_PS);
    expect_assert_failure(pass_bytes(&other, BEGIN_PS));
}

static void test_zeros_take_no_time(void **state)
{
    (void)state;
    dma.settings = (struct dma_settings){0};
    dma_time_use(&dma, BEGIN_PS, LEN);
    assert_int_equal(pass_bytes(&engine, BEGIN_PS), BEGIN_PS);
    assert_int_equal(pass_bytes(&engine, BEGIN_PS), BEGIN_PS);
    assert_int_equal(dma.busy_ps, 0);
}

/* The memory alone, without a thought for how long the search takes. */
static uint64_t plain_busy_ps[4 * DMA_WINDOWS];

static uint64_t plain_end_ps(uint64_t begin_ps, uint64_t need_ps)
{
    uint64_t first = begin_ps / DMA_WINDOW_PS, last = first;

    for (uint64_t rest_ps = need_ps; rest_ps != 0; last++) {
        uint64_t part_ps = MIN(rest_ps, DMA_WINDOW_PS - plain_busy_ps[last]);

        plain_busy_ps[last] += part_ps;
        rest_ps -= part_ps;
    }
    last--;
    return MAX(begin_ps + need_ps,
               last * DMA_WINDOW_PS +
                   (last == first ? 0 : plain_busy_ps[last]));
}

/* At random times, with more to do than the memory can at most of them: many
 * windows are full, and some between them are not. */
static void test_a_full_memory_is_used_as_early_as_possible(void **state)
{
    uint64_t seed = 1;

    (void)state;
    memset(plain_busy_ps, 0, sizeof(plain_busy_ps));
    dma.settings.bus_mbps = 0;
    for (unsigned int i = 0; i < 20000; i++) {
        uint64_t begin_ps =
            i * (DMA_WINDOW_PS / 8) +
            random_next(&seed) % (100 * (uint64_t)DMA_WINDOW_PS);
        uint32_t len = (uint32_t)(random_next(&seed) %
                                  (random_next(&seed) % 16 == 0 ? (3 * FULL)
                                                                : (FULL / 8)));
        struct dma_engine idle = {0};

        assert_int_equal(dma_time_pass(&dma, &idle, begin_ps, len),
                         plain_end_ps(begin_ps, (uint64_t)len * 80) +
                             LATENCY_PS);
    }
    assert_true(dma.full_end - dma.full_begin > 100);
}
