/* SPDX-License-Identifier: BSD-2-Clause */
/* A drive whose machine stands still, and what a wait then allows it. */
#include "late.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum {
    STILL_US = 1500000, /* The machine stands still at the first turn. */
    TURN_US = 4000,
    NEVER = 1000000,
};

struct drive {
    unsigned int turns, needs, dies_at;
    uint64_t now_us;
};

static bool drive_turn(void *ctx)
{
    struct drive *drive = ctx;

    drive->now_us += drive->turns == 0 ? STILL_US : TURN_US;
    drive->turns++;
    return drive->turns < drive->dies_at;
}

static bool drive_run(void *ctx, bool (*is_done)(void *done_ctx),
                      void *done_ctx, uint64_t timeout_us)
{
    struct drive *drive = ctx;

    if (is_done(done_ctx)) {
        return true;
    }
    drive->now_us += timeout_us;
    return false;
}

static uint64_t drive_now_us(void *ctx)
{
    return ((const struct drive *)ctx)->now_us;
}

static bool drive_is_done(void *ctx)
{
    const struct drive *drive = ctx;

    return drive->turns >= drive->needs;
}

static bool wait_for(struct drive *drive, unsigned int *turns)
{
    const struct late late = {drive, drive_turn, drive_run, drive_now_us};

    return late_wait(&late, drive_is_done, drive, turns);
}

static void test_an_answer_that_takes_some_turns_comes_in_time(void **state)
{
    unsigned int turns;

    (void)state;
    for (unsigned int needs = 1; needs <= LATE_TURNS; needs++) {
        struct drive drive = {.needs = needs, .dies_at = NEVER};

        assert_true(wait_for(&drive, &turns));
        assert_int_equal(turns, needs);
    }
}

static void test_a_drive_that_runs_and_does_nothing_is_given_up(void **state)
{
    struct drive drive = {.needs = NEVER, .dies_at = NEVER};
    unsigned int turns;

    (void)state;
    assert_false(wait_for(&drive, &turns));
    assert_true(turns >= LATE_TURNS);
    /* The time in which the machine stood still does not count. */
    assert_true(drive.now_us >= STILL_US + LATE_US);
    assert_true(drive.now_us < STILL_US + 3 * LATE_US);
}

static void test_a_drive_that_does_not_answer_is_given_up(void **state)
{
    unsigned int turns;

    (void)state;
    for (unsigned int at = 1; at < LATE_TURNS; at++) {
        struct drive drive = {.needs = NEVER, .dies_at = at};

        assert_false(wait_for(&drive, &turns));
        assert_int_equal(turns, at - 1);
    }
}

static unsigned int catch_up(struct drive *drive)
{
    const struct late late = {drive, drive_turn, drive_run, drive_now_us};

    late_catch_up(&late);
    return drive->turns;
}

static void test_a_drive_that_was_still_gets_more_turns_to_catch_up(
    void **state)
{
    struct drive quick = {.turns = 1, .dies_at = NEVER};
    struct drive still = {.dies_at = NEVER};
    struct drive dead = {.dies_at = 3};

    (void)state;
    assert_int_equal(catch_up(&quick), 1 + LATE_FEW);
    assert_int_equal(catch_up(&still), LATE_TURNS);
    assert_int_equal(catch_up(&dead), 3);
}
