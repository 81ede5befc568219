/* SPDX-License-Identifier: BSD-2-Clause */
/* The driver of the I2C controllers: its register writes, with the core. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <string.h>
#include <cmocka.h>

#include "firmware/drivers/i2c.h"
#include "hw-model/i2c/hw_i2c.h"
#include "tests/test_fixture.h"
#include "tests/unit/firmware/drivers/model.h"

enum { TARGET = 0x48 };

static struct hw_i2c core;
static struct i2c i2c;
static unsigned int ended;
static enum i2c_outcome outcomes[4];

static bool core_read(uint32_t offset, uint32_t *value)
{
    return hw_i2c_read(&core, offset, value);
}

static bool core_write(uint32_t offset, uint32_t value)
{
    return hw_i2c_write(&core, offset, value);
}

static bool wires_start(void *ctx, uint8_t addr, bool is_read)
{
    (void)ctx;
    (void)is_read;
    return addr == TARGET;
}

static bool wires_send(void *ctx, uint8_t byte)
{
    (void)ctx;
    return byte != 0xee;
}

static uint8_t wires_receive(void *ctx)
{
    (void)ctx;
    return 0x5a;
}

static void wires_ignore(void *ctx)
{
    (void)ctx;
}

static void note_end(void *ctx, struct i2c_request *request,
                     enum i2c_outcome outcome)
{
    (void)ctx;
    (void)request;
    outcomes[ended++] = outcome;
}

static int setup(void **state)
{
    struct hw_i2c_config config = {
        .wires = {NULL, wires_start, wires_send, wires_receive, wires_ignore,
                  wires_ignore},
    };

    (void)state;
    model_init();
    config.env = test_env_init(&model.env, model.dram_base, MODEL_DRAM_BYTES);
    hw_i2c_init(&core, &config);
    model.read = core_read;
    model.write = core_write;
    ended = 0;
    assert_true(i2c_init(&i2c, MODEL_REGS, 400));
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    free(model.dram_base);
    return 0;
}

TEST_FIXTURE(setup, teardown)

static void end_transfer(void)
{
    model.env.now_ns = model.env.deadline_ns;
    hw_i2c_timer(&core);
    assert_true(i2c_poll(&i2c));
}

static void test_a_transfer_is_these_register_writes(void **state)
{
    static const struct model_write want[] = {
        {A_I2C_TX, 0x44332211}, {A_I2C_TX + 4, 0x55},
        {A_I2C_ADDR, TARGET},   {A_I2C_LENGTHS, 2 << 16 | 5},
        {A_I2C_START, 1},
    };
    struct i2c_request request = {.addr = TARGET,
                                  .write_len = 5,
                                  .read_len = 2,
                                  .bytes = {0x11, 0x22, 0x33, 0x44, 0x55},
                                  .done = note_end};

    (void)state;
    model_forget_log();
    i2c_submit(&i2c, &request);
    model_expect_log(want, ARRAY_LEN(want));
    assert_false(i2c_poll(&i2c));
    end_transfer();
    assert_int_equal(ended, 1);
    assert_int_equal(outcomes[0], I2C_OK);
    assert_int_equal(request.bytes[0], 0x5a);
    assert_int_equal(request.bytes[1], 0x5a);
    assert_int_equal(request.bytes[2], 0x33);
}

static void test_requests_run_one_after_the_other(void **state)
{
    struct i2c_request requests[] = {
        {.addr = TARGET, .write_len = 1, .done = note_end},
        {.addr = TARGET + 1, .write_len = 1, .done = note_end},
        {.addr = TARGET, .write_len = 1, .bytes = {0xee}, .done = note_end},
    };

    (void)state;
    for (unsigned int i = 0; i < ARRAY_LEN(requests); i++) {
        i2c_submit(&i2c, &requests[i]);
    }
    for (unsigned int i = 0; i < ARRAY_LEN(requests); i++) {
        assert_int_equal(ended, i);
        end_transfer();
    }
    assert_int_equal(outcomes[0], I2C_OK);
    assert_int_equal(outcomes[1], I2C_NO_TARGET);
    assert_int_equal(outcomes[2], I2C_REFUSED);
    assert_false(i2c_poll(&i2c));
}

static void test_without_a_controller_nobody_answers(void **state)
{
    struct i2c_request request = {
        .addr = TARGET, .write_len = 1, .done = note_end};
    uint8_t mail[I2C_TRANSFER_MAX];
    struct i2c none;

    (void)state;
    assert_false(i2c_init(&none, 0, 100));
    i2c_submit(&none, &request);
    assert_true(i2c_poll(&none));
    assert_int_equal(outcomes[0], I2C_NO_TARGET);
    assert_int_equal(i2c_take_mail(&none, mail), 0);
}

static void test_a_message_is_taken_once(void **state)
{
    uint8_t mail[I2C_TRANSFER_MAX];

    (void)state;
    i2c_target_mail(&i2c, 0x1d);
    assert_true(hw_i2c_target_start(&core, 0x1d, false));
    for (uint8_t i = 1; i <= 6; i++) {
        assert_true(hw_i2c_target_send(&core, i));
    }
    hw_i2c_target_stop(&core);
    assert_true(model.env.irq);
    i2c_irq_take(&i2c);
    assert_false(model.env.irq);
    assert_int_equal(i2c_take_mail(&i2c, mail), 6);
    assert_memory_equal(mail, "\x01\x02\x03\x04\x05\x06", 6);
    assert_int_equal(i2c_take_mail(&i2c, mail), 0);
}
