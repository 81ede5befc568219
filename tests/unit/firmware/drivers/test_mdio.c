/* SPDX-License-Identifier: BSD-2-Clause */
/* The driver of MDIO: its register writes, with the core of the controller. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <string.h>
#include <cmocka.h>

#include "firmware/drivers/mdio.h"
#include "hw-model/i2c/hw_i2c.h"
#include "tests/test_fixture.h"
#include "tests/unit/firmware/drivers/model.h"

enum { PHY = 5, SENSOR = 0x48, FRAMES_MAX = 8 };

enum { ON = 1, ON_MDIO = 1 | 4 }; /* I2C_CTRL */

static struct hw_i2c core;
static struct i2c i2c;
static struct mdio_frame frames[FRAMES_MAX];
static unsigned int frame_count, ended;
static uint16_t values[4];

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
    return addr == SENSOR;
}

static bool wires_send(void *ctx, uint8_t byte)
{
    (void)ctx;
    (void)byte;
    return true;
}

static void wires_ignore(void *ctx)
{
    (void)ctx;
}

/* The PHY answers with the number of the frame. */
static uint16_t phy_frame(void *ctx, const struct mdio_frame *frame)
{
    (void)ctx;
    frames[frame_count++] = *frame;
    return (uint16_t)(frame->phy == PHY ? 0x1000 + frame_count : MDIO_NOBODY);
}

static void note_value(void *ctx, struct mdio_read *read, uint16_t value)
{
    (void)ctx;
    (void)read;
    values[ended++] = value;
}

static void note_transfer(void *ctx, struct i2c_request *request,
                          enum i2c_outcome outcome)
{
    (void)ctx;
    (void)request;
    values[ended++] = (uint16_t)outcome;
}

static int setup(void **state)
{
    struct hw_i2c_config config = {
        .wires = {NULL, wires_start, wires_send, NULL, wires_ignore,
                  wires_ignore},
        .mdio = {NULL, phy_frame},
        .has_mdio = true,
    };

    (void)state;
    model_init();
    config.env = test_env_init(&model.env, model.dram_base, MODEL_DRAM_BYTES);
    hw_i2c_init(&core, &config);
    model.read = core_read;
    model.write = core_write;
    frame_count = 0;
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

static void end_one(void)
{
    model.env.now_ns = model.env.deadline_ns;
    hw_i2c_timer(&core);
    assert_true(i2c_poll(&i2c));
}

static void test_a_register_of_clause_22_needs_one_frame(void **state)
{
    static const struct model_write want[] = {
        {A_I2C_CTRL, ON_MDIO},
        {A_I2C_MDIO, 2 << 26 | PHY << 21 | 3 << 16},
        {A_I2C_CTRL, ON},
    };
    struct mdio_read read = {
        .phy = PHY, .device = MDIO_CLAUSE22, .reg = 3, .done = note_value};

    (void)state;
    model_forget_log();
    mdio_submit(&i2c, &read);
    assert_false(i2c_poll(&i2c));
    end_one();
    model_expect_log(want, ARRAY_LEN(want));
    assert_int_equal(ended, 1);
    assert_int_equal(values[0], 0x1001);
    assert_false(i2c_poll(&i2c));
}

static void test_a_register_of_clause_45_needs_an_address_first(void **state)
{
    struct mdio_read read = {
        .phy = PHY, .device = 3, .reg = 0x1234, .done = note_value};

    (void)state;
    mdio_submit(&i2c, &read);
    end_one();
    assert_int_equal(ended, 0);
    end_one();
    assert_int_equal(ended, 1);
    assert_int_equal(values[0], 0x1002);
    assert_int_equal(frame_count, 2);
    assert_true(frames[0].is_clause45 && frames[1].is_clause45);
    assert_int_equal(frames[0].op, I2C_MDIO_OP_ADDRESS);
    assert_int_equal(frames[0].reg, 3);
    assert_int_equal(frames[0].data, 0x1234);
    assert_int_equal(frames[1].op, I2C_MDIO_OP_READ_45);
    assert_int_equal(frames[1].reg, 3);
}

/* Frames and transfers take turns on the same pins. */
static void test_transfers_before_and_behind_a_frame_are_on_i2c(void **state)
{
    struct i2c_request transfers[] = {
        {.addr = SENSOR, .write_len = 1, .done = note_transfer},
        {.addr = SENSOR, .write_len = 1, .done = note_transfer},
    };
    struct mdio_read read = {
        .phy = PHY, .device = 1, .reg = 2, .done = note_value};

    (void)state;
    i2c_target_mail(&i2c, 0x1d);
    i2c_submit(&i2c, &transfers[0]);
    mdio_submit(&i2c, &read);
    i2c_submit(&i2c, &transfers[1]);
    end_one();
    assert_int_equal(values[0], I2C_OK);
    assert_false(hw_i2c_target_matches(&core, 0x1d));
    end_one();
    end_one();
    assert_int_equal(values[1], 0x1002);
    assert_true(hw_i2c_target_matches(&core, 0x1d));
    end_one();
    assert_int_equal(values[2], I2C_OK);
}

static void test_without_a_phy_or_mdio_there_is_no_answer(void **state)
{
    struct mdio_read read = {
        .phy = PHY + 1, .device = MDIO_CLAUSE22, .reg = 2, .done = note_value};

    (void)state;
    mdio_submit(&i2c, &read);
    end_one();
    assert_int_equal(values[0], MDIO_NO_ANSWER);
    core.config.has_mdio = false;
    read.phy = PHY;
    mdio_submit(&i2c, &read);
    assert_true(i2c_poll(&i2c)); /* the controller has refused the frame */
    assert_int_equal(values[1], MDIO_NO_ANSWER);
    assert_int_equal(frame_count, 1);
}
