/* SPDX-License-Identifier: BSD-2-Clause */
/* The time that DMA takes in the native process. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "firmware/native/dma_time.h"
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
