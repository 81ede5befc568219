/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The driver of the aggregation block: its register writes, with the block's
 * core.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <string.h>
#include <cmocka.h>

#include "firmware/drivers/lag.h"
#include "hw-model/lag/hw_lag.h"
#include "tests/test_fixture.h"
#include "tests/unit/firmware/drivers/model.h"

static struct hw_lag core;
static struct lag lag;
static bool is_other_block;

static bool core_read(uint32_t offset, uint32_t *value)
{
    return hw_lag_read(&core, offset, value) &&
           (!is_other_block || (*value = 0x50525401));
}

static bool core_write(uint32_t offset, uint32_t value)
{
    return hw_lag_write(&core, offset, value);
}

static uint64_t now_ns(void *ctx)
{
    (void)ctx;
    return UINT64_C(1000000000);
}

static void ignore_rx(void *ctx, unsigned int port,
                      const struct frame_rx *frames, unsigned int n)
{
    (void)ctx, (void)port, (void)frames, (void)n;
}

static void ignore_ready(void *ctx, unsigned int port)
{
    (void)ctx, (void)port;
}

static void ignore_link(void *ctx, unsigned int port, bool is_up)
{
    (void)ctx, (void)port, (void)is_up;
}

static int setup(void **state)
{
    const struct hw_lag_ops ops = {
        .now_ns = now_ns,
        .rnic_rx = ignore_rx,
        .rnic_ready = ignore_ready,
        .link_changed = ignore_link,
    };

    (void)state;
    model_init();
    model.read = core_read;
    model.write = core_write;
    is_other_block = false;
    hw_lag_init(&core, &ops);
    hw_lag_link(&core, 0, true);
    hw_lag_link(&core, 1, true);
    assert_int_equal(lag_init(&lag, MODEL_REGS, LAG_MODE_STANDBY, true),
                     INIT_OK);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    free(model.dram_base);
    return 0;
}

static void expect_write(unsigned int n, uint32_t offset, uint32_t value)
{
    assert_true(n < model.num_log);
    assert_int_equal(model.log[n].offset, offset);
    assert_int_equal(model.log[n].value, value);
}

static void test_lag_init_resets_and_switches_on(void **state)
{
    (void)state;
    assert_int_equal(model.num_log, 2);
    expect_write(0, A_LAG_CTRL, 0x80000000);
    expect_write(1, A_LAG_CTRL, 0x11);
    model_forget_log();
    is_other_block = true;
    assert_int_equal(lag_init(&lag, MODEL_REGS, LAG_MODE_DISTRIBUTE, false),
                     INIT_NO_DEVICE);
    assert_int_equal(model.num_log, 0);
}

static void test_lag_members_active_and_status(void **state)
{
    struct lag_status status;

    (void)state;
    lag_set_members(&lag, 3, 2);
    expect_write(2, A_LAG_MEMBERS, 0x203);
    lag_status_get(&lag, &status);
    assert_int_equal(status.links, 3);
    assert_int_equal(status.usable, 2);
    assert_int_equal(lag_active(&lag), 1); /* frames leave on port 1 */
    lag_set_members(&lag, 3, 3);
    lag_set_active(&lag, 0);
    expect_write(4, A_LAG_ACTIVE, 0);
    assert_int_equal(lag_active(&lag), 0);
    lag_heard(&lag, 1);
    expect_write(5, A_LAG_HEARD, 1);
    assert_int_equal(lag_active(&lag), 1);
}

static void test_lag_counters_have_64_bits(void **state)
{
    (void)state;
    core.counters[LAG_COUNT_TX1] = UINT64_C(0x123456789a);
    assert_int_equal(lag_counter_read(&lag, LAG_COUNT_TX1),
                     UINT64_C(0x123456789a));
    assert_int_equal(lag_counter_read(&lag, LAG_COUNT_TX0), 0);
}

TEST_FIXTURE(setup, teardown)
