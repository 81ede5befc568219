/* SPDX-License-Identifier: BSD-2-Clause */
/* When the main loop kicks the watchdog. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <string.h>

#include "firmware/loop/watchdog_keeper.h"
#include "tests/test_fixture.h"

static struct {
    struct watchdog watchdog;
    struct watchdog_keeper keeper;
    struct loop loop;
    uint64_t hal_us;
    uint64_t kicked_us; /* hal_now_us() of the last kick */
    unsigned int kicks;
} world;

void watchdog_kick(const struct watchdog *watchdog)
{
    assert_ptr_equal(watchdog, &world.watchdog);
    world.kicked_us = world.hal_us;
    world.kicks++;
}

static int new_world(void **state)
{
    static const struct component component = {
        .name = "watchdog",
        .step = watchdog_keeper_step,
    };

    (void)state;
    memset(&world, 0, sizeof(world));
    world.hal_us = 7000000;
    world.keeper.watchdog = &world.watchdog;
    loop_init(&world.loop);
    loop_add(&world.loop, &component, &world.keeper);
    return 0;
}

/* Take a turn that takes `us`. */
static void take_turn(uint64_t us)
{
    (void)loop_turn(&world.loop, world.hal_us);
    world.hal_us += us;
}

static void test_an_idle_loop_kicks_at_the_end_of_each_sleep(void **state)
{
    (void)state;
    for (unsigned int i = 1; i < 10; i++) {
        uint64_t deadline_us;

        take_turn(0);
        assert_int_equal(world.kicks, i);
        assert_true(loop_arm(&world.loop, &deadline_us));
        assert_int_equal(deadline_us, world.hal_us + WATCHDOG_KICK_US);
        world.hal_us = deadline_us;
    }
}

/* The watchdog counts what the time of the loop leaves out of long turns. */
static void test_turns_that_take_long_are_kicked_each(void **state)
{
    (void)state;
    for (unsigned int i = 1; i < 10; i++) {
        take_turn(900000);
        assert_int_equal(world.kicks, i);
    }
}

static void test_short_turns_share_a_kick(void **state)
{
    (void)state;
    for (unsigned int i = 0; i < 1000; i++) {
        loop_request_steps(&world.loop);
        take_turn(10000);
        assert_true(world.hal_us - world.kicked_us <= WATCHDOG_KICK_US);
    }
    assert_int_equal(world.kicks, 20);
}

TEST_FIXTURE(new_world, NULL)
