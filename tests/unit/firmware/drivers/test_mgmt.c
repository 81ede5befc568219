/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How the driver of the management block starts, with the block's core.  The
 * messages and trace records of the two together are tested in tests/native.
 */
#include "firmware/drivers/mgmt.h"

#include "firmware/hal/time.h"
#include "hw-model/mgmt/hw_mgmt.h"
#include "lib/regfields.h"
#include "hw-model/regs/mgmt.h"
#include "tests/test_fixture.h"
#include "tests/unit/firmware/drivers/model.h"

static struct hw_mgmt core;
static struct mgmt mgmt;
static bool is_other_block; /* another device answers */
static bool is_refused;     /* the block does not become enabled */

static bool core_read(uint32_t offset, uint32_t *value)
{
    if (!hw_mgmt_read(&core, offset, value)) {
        return false;
    }
    if ((is_other_block && offset == A_MGMT_ID) ||
        (is_refused && offset == A_MGMT_CTRL)) {
        *value = 0;
    }
    return true;
}

static bool core_write(uint32_t offset, uint32_t value)
{
    return hw_mgmt_write(&core, offset, value);
}

static void core_run(void)
{
    hw_mgmt_run(&core);
}

static size_t ignore_send(void *ctx, enum hw_mgmt_channel channel,
                          const uint8_t *data, size_t len)
{
    (void)ctx, (void)channel, (void)data;
    return len;
}

uint64_t hal_now_ns(void)
{
    return model.env.now_ns;
}

uint64_t hal_now_us(void)
{
    return model.env.now_ns / 1000;
}

static int setup(void **state)
{
    struct hw_mgmt_config config = {.send = ignore_send};

    (void)state;
    model_init();
    model.read = core_read;
    model.write = core_write;
    model.run = core_run;
    is_other_block = is_refused = false;
    config.env = test_env_init(&model.env, model.dram_base, MODEL_DRAM_BYTES);
    hw_mgmt_init(&core, &config);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    free(model.dram_base);
    return 0;
}

static enum init_result start_mgmt(void)
{
    return mgmt_init(&mgmt, MODEL_REGS, &model.dram);
}

static void test_mgmt_init_starts_the_block(void **state)
{
    (void)state;
    assert_int_equal(start_mgmt(), INIT_OK);
    assert_int_equal(core.state.ctrl & 1, 1);
    assert_false(mgmt_has_input(&mgmt));
}

static void test_mgmt_init_says_why_it_failed(void **state)
{
    (void)state;
    is_other_block = true;
    assert_int_equal(start_mgmt(), INIT_NO_DEVICE);
    assert_int_equal(model.num_log, 0);
    assert_int_equal(model.dram.used_bytes, 0);
    is_other_block = false;
    is_refused = true;
    assert_int_equal(start_mgmt(), INIT_REFUSED);
    model_forget_log();
    assert_false(mgmt_has_input(&mgmt));
    is_refused = false;
    assert_non_null(dram_alloc(
        &model.dram, MODEL_DRAM_BYTES - model.dram.used_bytes - 8192, 1));
    assert_int_equal(start_mgmt(), INIT_NO_MEMORY);
    assert_false(mgmt_has_input(&mgmt));
}

TEST_FIXTURE(setup, teardown)
