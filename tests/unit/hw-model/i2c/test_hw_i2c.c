/* SPDX-License-Identifier: BSD-2-Clause */
/* The I2C controller as its driver and as other controllers of its bus see it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <string.h>

#include "hw-model/i2c/hw_i2c.h"
#include "tests/test_fixture.h"
#include "tests/unit/hw-model/test_env.h"

enum { TARGET = 0x48, TAKES = 4, MAIL_AT = 0x1d, IMAGE_AT = 0x6a };

enum { /* MDIO frames for register 2 of PHY 1 */
       MDIO_TO = 1 << 21 | 2 << 16,
       MDIO_TO_45 = 1 << 28 | MDIO_TO, /* clause 45 */
       MDIO_ADDRESS = I2C_MDIO_OP_ADDRESS << 26,
       MDIO_WRITE = I2C_MDIO_OP_WRITE << 26,
       MDIO_READ = I2C_MDIO_OP_READ << 26,
       MDIO_READ_45 = I2C_MDIO_OP_READ_45 << 26,
};

/* One target, which keeps what is written and answers with counting bytes. */
static struct {
    struct test_env env;
    struct hw_i2c i2c;
    uint8_t got[I2C_BUFFER_BYTES];
    unsigned int got_len, starts, stops, nacks;
    uint8_t next;
    struct mdio_frame frame; /* the last one on MDIO */
} bed;

static bool bed_start(void *ctx, uint8_t addr, bool is_read)
{
    (void)ctx;
    (void)is_read;
    bed.starts++;
    return addr == TARGET;
}

static bool bed_send(void *ctx, uint8_t byte)
{
    (void)ctx;
    if (bed.got_len == TAKES) {
        return false;
    }
    bed.got[bed.got_len++] = byte;
    return true;
}

static uint8_t bed_receive(void *ctx)
{
    (void)ctx;
    return bed.next++;
}

static void bed_nack(void *ctx)
{
    (void)ctx;
    bed.nacks++;
}

static void bed_stop(void *ctx)
{
    (void)ctx;
    bed.stops++;
}

static uint16_t bed_frame(void *ctx, const struct mdio_frame *frame)
{
    (void)ctx;
    bed.frame = *frame;
    return 0x4321;
}

static uint32_t get_reg(uint32_t offset)
{
    uint32_t value;

    assert_true(hw_i2c_read(&bed.i2c, offset, &value));
    return value;
}

static void set_reg(uint32_t offset, uint32_t value)
{
    assert_true(hw_i2c_write(&bed.i2c, offset, value));
}

static int setup(void **state)
{
    struct hw_i2c_config config = {
        .env = test_env_init(&bed.env, NULL, 0),
        .wires =
            {
                .start = bed_start,
                .send = bed_send,
                .receive = bed_receive,
                .nack = bed_nack,
                .stop = bed_stop,
            },
        .has_mdio = true,
    };

    (void)state;
    memset(&bed, 0, sizeof(bed));
    config.env = test_env_init(&bed.env, NULL, 0);
    hw_i2c_init(&bed.i2c, &config);
    set_reg(A_I2C_IRQ_ENABLE, 3);
    set_reg(A_I2C_CTRL, R_I2C_CTRL_ENABLE_MASK | R_I2C_CTRL_TARGET_MASK);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    return 0;
}

TEST_FIXTURE(setup, teardown)

/* Start a transfer and let its time pass. @return the result */
static uint32_t run_transfer(uint8_t addr, uint32_t write_len,
                             uint32_t read_len)
{
    set_reg(A_I2C_ADDR, addr);
    set_reg(A_I2C_LENGTHS, read_len << 16 | write_len);
    set_reg(A_I2C_START, 1);
    if (FIELD_GET(get_reg(A_I2C_STATUS), I2C_STATUS, BUSY)) {
        bed.env.now_ns = bed.env.deadline_ns;
        hw_i2c_timer(&bed.i2c);
    }
    return FIELD_GET(get_reg(A_I2C_STATUS), I2C_STATUS, RESULT);
}

static void test_a_write_and_read_take_the_time_of_their_bits(void **state)
{
    (void)state;
    bed.env.now_ns = 1000;
    set_reg(A_I2C_TX, 0x44332211);
    set_reg(A_I2C_ADDR, TARGET);
    set_reg(A_I2C_LENGTHS, 2 << 16 | 1);
    set_reg(A_I2C_START, 1);
    assert_int_equal(get_reg(A_I2C_STATUS), R_I2C_STATUS_BUSY_MASK);
    assert_int_equal(bed.starts, 0);
    /* Two addresses and three bytes of nine bits, two starts, one stop and one
     * bit of idle bus: 49 bits at 100 kHz. */
    assert_int_equal(bed.env.deadline_ns, 1000 + 49 * 10000);
    bed.env.now_ns = bed.env.deadline_ns;
    hw_i2c_timer(&bed.i2c);
    assert_true(bed.env.irq);
    assert_int_equal(bed.got_len, 1);
    assert_int_equal(bed.got[0], 0x11);
    assert_int_equal(bed.starts, 2);
    assert_int_equal(bed.stops, 1);
    assert_int_equal(bed.nacks, 1);
    assert_int_equal(get_reg(A_I2C_RX) & 0xffff, 0x0100);
    set_reg(A_I2C_IRQ_STATUS, R_I2C_IRQ_STATUS_DONE_MASK);
    assert_false(bed.env.irq);
}

static void test_results_say_who_did_not_acknowledge(void **state)
{
    (void)state;
    assert_int_equal(run_transfer(TARGET, 0, 0), I2C_RESULT_OK);
    assert_int_equal(run_transfer(TARGET + 1, 1, 0), I2C_RESULT_NO_TARGET);
    assert_int_equal(run_transfer(TARGET + 1, 0, 1), I2C_RESULT_NO_TARGET);
    assert_int_equal(run_transfer(TARGET, TAKES + 2, 1), I2C_RESULT_REFUSED);
    assert_int_equal(FIELD_GET(get_reg(A_I2C_STATUS), I2C_STATUS, SENT), TAKES);
    assert_int_equal(run_transfer(TARGET, I2C_BUFFER_BYTES + 1, 0),
                     I2C_RESULT_INVALID);
    assert_int_equal(run_transfer(0x80, 1, 0), I2C_RESULT_INVALID);
    assert_int_equal(bed.starts, bed.stops);
}

static void test_registers_of_a_running_transfer_do_not_change(void **state)
{
    (void)state;
    set_reg(A_I2C_TX, 0x11);
    set_reg(A_I2C_ADDR, TARGET);
    set_reg(A_I2C_LENGTHS, 1);
    set_reg(A_I2C_START, 1);
    set_reg(A_I2C_TX, 0x22);
    set_reg(A_I2C_ADDR, 0);
    set_reg(A_I2C_LENGTHS, 9);
    set_reg(A_I2C_START, 1);
    hw_i2c_timer(&bed.i2c);
    assert_int_equal(bed.got_len, 1);
    assert_int_equal(bed.got[0], 0x11);
    assert_int_equal(get_reg(A_I2C_STATUS) & 0xf00, 0);
}

static void test_messages_wait_in_order_until_there_is_no_room(void **state)
{
    (void)state;
    set_reg(A_I2C_MAIL_ADDR, R_I2C_MAIL_ADDR_ENABLE_MASK | MAIL_AT);
    for (unsigned int i = 0; i < I2C_MAIL_SLOTS; i++) {
        assert_true(hw_i2c_target_start(&bed.i2c, MAIL_AT, false));
        for (unsigned int k = 0; k <= i; k++) {
            assert_true(hw_i2c_target_send(&bed.i2c, (uint8_t)(i + k)));
        }
        hw_i2c_target_stop(&bed.i2c);
    }
    assert_true(bed.env.irq);
    assert_false(hw_i2c_target_start(&bed.i2c, MAIL_AT, false));
    hw_i2c_target_stop(&bed.i2c);
    for (unsigned int i = 0; i < I2C_MAIL_SLOTS; i++) {
        assert_int_equal(get_reg(A_I2C_MAIL_STATUS),
                         (i + 1) << 16 | (I2C_MAIL_SLOTS - i));
        assert_int_equal(get_reg(A_I2C_MAIL) & 0xff, i);
        set_reg(A_I2C_MAIL_POP, 1);
    }
    assert_int_equal(get_reg(A_I2C_MAIL_STATUS), 0);
    set_reg(A_I2C_MAIL_POP, 1);
    assert_int_equal(get_reg(A_I2C_MAIL_STATUS), 0);
}

static void test_a_message_of_more_than_a_buffer_is_refused(void **state)
{
    (void)state;
    set_reg(A_I2C_MAIL_ADDR, R_I2C_MAIL_ADDR_ENABLE_MASK | MAIL_AT);
    assert_true(hw_i2c_target_start(&bed.i2c, MAIL_AT, false));
    for (unsigned int i = 0; i < I2C_BUFFER_BYTES; i++) {
        assert_true(hw_i2c_target_send(&bed.i2c, 1));
    }
    assert_false(hw_i2c_target_send(&bed.i2c, 1));
    /* The address takes no reads. */
    hw_i2c_target_stop(&bed.i2c);
    assert_false(hw_i2c_target_start(&bed.i2c, MAIL_AT, true));
}

static void test_an_image_changes_when_it_is_published(void **state)
{
    (void)state;
    set_reg(A_I2C_IMAGE0_ADDR, R_I2C_MAIL_ADDR_ENABLE_MASK | IMAGE_AT);
    set_reg(A_I2C_IMAGE0, 0x44332211);
    assert_true(hw_i2c_target_start(&bed.i2c, IMAGE_AT, false));
    assert_true(hw_i2c_target_send(&bed.i2c, 2));
    assert_true(hw_i2c_target_start(&bed.i2c, IMAGE_AT, true));
    assert_int_equal(hw_i2c_target_receive(&bed.i2c), 0);
    hw_i2c_target_stop(&bed.i2c);
    set_reg(A_I2C_COMMIT, 1);
    assert_true(hw_i2c_target_start(&bed.i2c, IMAGE_AT, false));
    assert_true(hw_i2c_target_send(&bed.i2c, 2));
    assert_false(hw_i2c_target_send(&bed.i2c, 0xee)); /* it is read-only */
    assert_true(hw_i2c_target_start(&bed.i2c, IMAGE_AT, true));
    assert_int_equal(hw_i2c_target_receive(&bed.i2c), 0x33);
    assert_int_equal(hw_i2c_target_receive(&bed.i2c), 0x44);
    hw_i2c_target_stop(&bed.i2c);
    assert_int_equal(get_reg(A_I2C_MAIL_STATUS), 0);
}

static void test_a_disabled_block_answers_at_no_address(void **state)
{
    (void)state;
    set_reg(A_I2C_MAIL_ADDR, R_I2C_MAIL_ADDR_ENABLE_MASK | MAIL_AT);
    set_reg(A_I2C_IMAGE1_ADDR, IMAGE_AT); /* without ENABLE */
    assert_true(hw_i2c_target_matches(&bed.i2c, MAIL_AT));
    assert_false(hw_i2c_target_matches(&bed.i2c, IMAGE_AT));
    set_reg(A_I2C_CTRL, R_I2C_CTRL_ENABLE_MASK);
    assert_false(hw_i2c_target_matches(&bed.i2c, MAIL_AT));
    set_reg(A_I2C_CTRL, R_I2C_CTRL_TARGET_MASK);
    assert_false(hw_i2c_target_matches(&bed.i2c, MAIL_AT));
    set_reg(A_I2C_LENGTHS, 1);
    set_reg(A_I2C_START, 1);
    assert_int_equal(get_reg(A_I2C_STATUS), 0);
}

static void test_pins_carry_either_i2c_or_mdio(void **state)
{
    const uint32_t on = R_I2C_CTRL_ENABLE_MASK;

    (void)state;
    set_reg(A_I2C_MDIO, 1 << 21);
    assert_int_equal(FIELD_GET(get_reg(A_I2C_STATUS), I2C_STATUS, RESULT),
                     I2C_RESULT_INVALID);
    set_reg(A_I2C_CTRL, on | R_I2C_CTRL_MDIO_MASK);
    assert_int_equal(run_transfer(TARGET, 1, 0), I2C_RESULT_INVALID);
    set_reg(A_I2C_MDIO, MDIO_READ | MDIO_TO);
    assert_int_equal(get_reg(A_I2C_STATUS), R_I2C_STATUS_BUSY_MASK);
    assert_int_equal(bed.env.deadline_ns, bed.env.now_ns + 64 * 400);
    hw_i2c_timer(&bed.i2c);
    /* No PHY is on the bus. */
    assert_int_equal(get_reg(A_I2C_MDIO), MDIO_READ | MDIO_TO | 0xffff);
    assert_int_equal(bed.starts, 0);
    /* The general-purpose controller has no MDIO. */
    bed.i2c.config.has_mdio = false;
    set_reg(A_I2C_CTRL, R_I2C_CTRL_RESET_MASK);
    set_reg(A_I2C_CTRL, on | R_I2C_CTRL_MDIO_MASK);
    assert_int_equal(get_reg(A_I2C_CTRL), on);
}

/* After a frame that does not read, DATA still holds what was sent. */
static void test_only_an_mdio_frame_that_reads_changes_the_data(void **state)
{
    static const struct {
        uint32_t frame;
        uint16_t data_after;
    } rows[] = {
        {MDIO_WRITE | MDIO_TO, 0x1234},
        {MDIO_READ | MDIO_TO, 0xffff},
        {MDIO_ADDRESS | MDIO_TO_45, 0x1234},
        {MDIO_WRITE | MDIO_TO_45, 0x1234},
        {MDIO_READ | MDIO_TO_45, 0xffff},
        {MDIO_READ_45 | MDIO_TO_45, 0xffff},
    };

    (void)state;
    set_reg(A_I2C_CTRL, R_I2C_CTRL_ENABLE_MASK | R_I2C_CTRL_MDIO_MASK);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        set_reg(A_I2C_MDIO, rows[i].frame | 0x1234);
        hw_i2c_timer(&bed.i2c);
        assert_int_equal(FIELD_GET(get_reg(A_I2C_STATUS), I2C_STATUS, RESULT),
                         I2C_RESULT_OK);
        assert_int_equal(get_reg(A_I2C_MDIO),
                         rows[i].frame | rows[i].data_after);
    }
}

static void test_a_frame_reaches_what_is_on_mdio(void **state)
{
    (void)state;
    bed.i2c.config.mdio.frame = bed_frame;
    set_reg(A_I2C_CTRL, R_I2C_CTRL_ENABLE_MASK | R_I2C_CTRL_MDIO_MASK);
    set_reg(A_I2C_MDIO, MDIO_WRITE | MDIO_TO_45 | 0x1234);
    assert_int_equal(bed.frame.data, 0); /* only after its bit times */
    hw_i2c_timer(&bed.i2c);
    assert_true(bed.frame.is_clause45);
    assert_int_equal(bed.frame.op, I2C_MDIO_OP_WRITE);
    assert_int_equal(bed.frame.phy, 1);
    assert_int_equal(bed.frame.reg, 2);
    assert_int_equal(bed.frame.data, 0x1234);
    assert_int_equal(get_reg(A_I2C_MDIO), MDIO_WRITE | MDIO_TO_45 | 0x1234);
    set_reg(A_I2C_MDIO, MDIO_READ | MDIO_TO);
    hw_i2c_timer(&bed.i2c);
    assert_false(bed.frame.is_clause45);
    assert_int_equal(get_reg(A_I2C_MDIO), MDIO_READ | MDIO_TO | 0x4321);
}

static void test_state_that_is_impossible_is_not_loaded(void **state)
{
    (void)state;
    assert_true(hw_i2c_loaded(&bed.i2c));
    bed.i2c.state.mail_count = I2C_MAIL_SLOTS + 1;
    assert_false(hw_i2c_loaded(&bed.i2c));
    bed.i2c.state.mail_count = 1;
    bed.i2c.state.mail[0].len = I2C_BUFFER_BYTES + 1;
    assert_false(hw_i2c_loaded(&bed.i2c));
    bed.i2c.state.mail_count = 0;
    bed.i2c.state.speed_khz = 0;
    assert_false(hw_i2c_loaded(&bed.i2c));
    bed.i2c.state.speed_khz = I2C_SPEED_RESET;
    bed.i2c.state.lengths = I2C_BUFFER_BYTES + 1;
    bed.i2c.state.status = R_I2C_STATUS_BUSY_MASK;
    assert_false(hw_i2c_loaded(&bed.i2c));
    bed.i2c.state.lengths = 1;
    bed.i2c.state.deadline_ns = 77;
    assert_true(hw_i2c_loaded(&bed.i2c));
    assert_int_equal(bed.env.deadline_ns, 77);
}

static void test_registers_that_do_not_exist_are_refused(void **state)
{
    static const uint32_t missing[] = {0x024, 0x048, 0x0fc, 0x600, 0x105};
    uint32_t value;

    (void)state;
    for (unsigned int i = 0; i < ARRAY_LEN(missing); i++) {
        assert_false(hw_i2c_read(&bed.i2c, missing[i], &value));
        assert_false(hw_i2c_write(&bed.i2c, missing[i], 1));
    }
    assert_false(hw_i2c_write(&bed.i2c, A_I2C_RX, 1));
    assert_false(hw_i2c_write(&bed.i2c, A_I2C_MAIL, 1));
    set_reg(A_I2C_SPEED, 0);
    assert_int_equal(get_reg(A_I2C_SPEED), I2C_SPEED_MIN);
}
