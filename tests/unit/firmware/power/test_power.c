/* SPDX-License-Identifier: BSD-2-Clause */
/* What the drive does when its power fails.  tests/native/test_plp.c asks the
 * same of a whole drive. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "firmware/hal/time.h"
#include "firmware/power/power.h"
#include "tests/test_fixture.h"

static struct {
    struct log log;
    struct power power;
    bool is_failing;
    bool is_line_out; /* the log had been printed when the power could go */
    unsigned int asked, saves, ends;
    uint64_t save_us;
    char text[256]; /* what the log has printed */
    size_t len;
} world;

uint64_t hal_now_us(void)
{
    return 0;
}

static size_t print_text(void *ctx, const char *text, size_t len)
{
    (void)ctx;
    assert_true(world.len + len < sizeof(world.text));
    memcpy(world.text + world.len, text, len);
    world.len += len;
    return len;
}

static void wait_for_text(void *ctx)
{
    (void)ctx;
}

static bool is_failing(void *ctx)
{
    assert_ptr_equal(ctx, &world.asked);
    world.asked++;
    return world.is_failing;
}

static void note_end(void *ctx)
{
    assert_ptr_equal(ctx, &world.asked);
    world.ends++;
    world.is_line_out = strstr(world.text, "saves its write buffer") != NULL;
}

static void begin_save(void *ctx, uint64_t now_us)
{
    assert_ptr_equal(ctx, &world.saves);
    world.saves++;
    world.save_us = now_us;
}

static void start_power(bool has_capacitors)
{
    const struct power_config config = {
        .log = &world.log,
        .is_failing = has_capacitors ? is_failing : NULL,
        .saved = note_end,
        .ctx = &world.asked,
        .save = begin_save,
        .save_ctx = &world.saves,
    };

    memset(&world, 0, sizeof(world));
    log_init(&world.log,
             (struct log_sink){.write = print_text, .drain = wait_for_text});
    power_init(&world.power, &config);
}

static int new_world(void **state)
{
    (void)state;
    start_power(true);
    return 0;
}

TEST_FIXTURE(new_world, NULL)

static void test_nothing_happens_while_there_is_power(void **state)
{
    (void)state;
    assert_false(power_check(&world.power, 1));
    assert_false(power_check(&world.power, 2));
    assert_int_equal(world.asked, 2);
    assert_int_equal(world.saves, 0);
    log_flush(&world.log);
    assert_int_equal(world.len, 0);
}

static void test_the_buffer_is_saved_once(void **state)
{
    (void)state;
    world.is_failing = true;
    assert_true(power_check(&world.power, 77));
    assert_int_equal(world.saves, 1);
    assert_int_equal(world.save_us, 77);
    assert_false(power_check(&world.power, 78));
    assert_false(power_check(&world.power, 79));
    assert_int_equal(world.saves, 1);
    assert_int_equal(world.asked, 1);
}

/* The drive saves on when the power comes back meanwhile. */
static void test_power_that_comes_back_changes_nothing(void **state)
{
    (void)state;
    world.is_failing = true;
    assert_true(power_check(&world.power, 1));
    world.is_failing = false;
    assert_false(power_check(&world.power, 2));
    world.is_failing = true;
    assert_false(power_check(&world.power, 3));
    assert_int_equal(world.saves, 1);
    assert_int_equal(world.ends, 0);
}

static void test_a_drive_without_capacitors_asks_nobody(void **state)
{
    (void)state;
    start_power(false);
    world.is_failing = true;
    assert_false(power_check(&world.power, 1));
    assert_int_equal(world.asked, 0);
    assert_int_equal(world.saves, 0);
}

static void test_the_log_is_printed_before_the_power_goes(void **state)
{
    (void)state;
    world.is_failing = true;
    assert_true(power_check(&world.power, 1));
    assert_int_equal(world.len, 0);
    power_end(&world.power);
    assert_int_equal(world.ends, 1);
    assert_true(world.is_line_out);
    assert_non_null(strstr(world.text, "power: the power has failed; the drive "
                                       "saves its write buffer"));
}
