/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "firmware/loop/loop.h"
#include "tests/test_fixture.h"

#include <stdio.h>
#include <string.h>

/* A component that records its calls. */
struct worker {
    const char *name;
    uint32_t commands;    /* commands that wait for its poll */
    uint32_t work;        /* units of work that wait for its step */
    uint64_t poll_due_us; /* the deadline that each poll asks for; 0: none */
    uint64_t step_due_us; /* the deadline that each step asks for; 0: none */
    uint64_t arm_us;      /* the deadline that arming sets; 0: unchanged */
    bool refuses;         /* refuses to let the hart sleep */
    bool wants_step;      /* its step has to run after an interrupt */
    uint32_t done;        /* units of work and commands done */
    uint32_t irqs;
};

static struct {
    struct loop loop;
    struct worker a, b, c;
    char calls[256];
    uint64_t now_us; /* time of the last step */
} world;

static void note_call(const struct worker *worker, const char *what)
{
    size_t len = strlen(world.calls);

    snprintf(world.calls + len, sizeof(world.calls) - len, "%s%s%s",
             len != 0 ? " " : "", worker->name, what);
}

/*
 * Do work within the budget.
 * @return whether there was any
 */
static bool do_work(struct worker *worker, uint32_t *waiting, uint32_t budget)
{
    uint32_t count = MIN(*waiting, budget);

    *waiting -= count;
    worker->done += count;
    return count != 0;
}

static enum loop_work worker_poll(void *ctx, struct loop_step *step)
{
    struct worker *worker = ctx;

    note_call(worker, "-poll");
    if (worker->poll_due_us != 0) {
        loop_call_at(step, worker->poll_due_us);
    }
    return do_work(worker, &worker->commands, step->budget) ? LOOP_IO
                                                            : LOOP_IDLE;
}

static enum loop_work worker_step(void *ctx, struct loop_step *step)
{
    struct worker *worker = ctx;

    note_call(worker, "");
    world.now_us = step->now_us;
    if (worker->step_due_us != 0) {
        loop_call_at(step, worker->step_due_us);
    }
    return do_work(worker, &worker->work, step->budget) ? LOOP_EVENT
                                                        : LOOP_IDLE;
}

static void worker_flush(void *ctx)
{
    note_call(ctx, "-flush");
}

static bool worker_arm(void *ctx, uint64_t *deadline_us)
{
    struct worker *worker = ctx;

    note_call(worker, "-arm");
    if (worker->arm_us != 0) {
        *deadline_us = MIN(*deadline_us, worker->arm_us);
    }
    return !worker->refuses;
}

static bool worker_irqs(void *ctx, uint32_t irqs)
{
    struct worker *worker = ctx;

    worker->irqs = irqs;
    return worker->wants_step;
}

static const struct component complete = {
    .name = "complete",
    .budget = 10,
    .poll = worker_poll,
    .step = worker_step,
    .flush = worker_flush,
    .arm = worker_arm,
    .irqs = worker_irqs,
};

static const struct component bare = {
    .name = "bare",
    .budget = 3,
    .step = worker_step,
};

/* Components a and c have all functions, b has only a step. */
static int new_world(void **state)
{
    (void)state;
    memset(&world, 0, sizeof(world));
    world.a.name = "a";
    world.b.name = "b";
    world.c.name = "c";
    loop_init(&world.loop);
    loop_add(&world.loop, &complete, &world.a);
    loop_add(&world.loop, &bare, &world.b);
    loop_add(&world.loop, &complete, &world.c);
    return 0;
}

#define FULL_TURN  "a a-poll b c c-poll a-flush c-flush"
#define SHORT_TURN "a-poll c-poll a-flush c-flush"

/*
 * Take a turn and compare the calls.
 * @return whether the turn was busy
 */
static bool expect_turn(uint64_t now_us, const char *calls)
{
    bool is_busy;

    world.calls[0] = '\0';
    is_busy = loop_turn(&world.loop, now_us);
    assert_string_equal(world.calls, calls);
    return is_busy;
}

static void expect_deadline(uint64_t expected_us)
{
    uint64_t deadline_us;

    assert_true(loop_arm(&world.loop, &deadline_us));
    assert_true(deadline_us == expected_us);
}

static void test_first_turn_calls_everything_in_order_and_then_flushes(
    void **state)
{
    (void)state;
    assert_false(expect_turn(77, FULL_TURN));
    assert_int_equal(world.now_us, 77);
}

static void test_turn_without_a_reason_for_steps_calls_polls_only(void **state)
{
    (void)state;
    assert_false(expect_turn(0, FULL_TURN));
    expect_deadline(LOOP_NO_DEADLINE);
    assert_false(expect_turn(1000000000, SHORT_TURN));
}

static void test_turn_is_busy_if_any_component_had_work(void **state)
{
    uint32_t *const waiting[] = {&world.a.work, &world.b.work,
                                 &world.a.commands, &world.c.commands};

    (void)state;
    for (unsigned int i = 0; i < ARRAY_LEN(waiting); i++) {
        *waiting[i] = 1;
        loop_request_steps(&world.loop);
        assert_true(loop_turn(&world.loop, 0));
        assert_false(loop_turn(&world.loop, 0));
    }
}

static void test_turn_after_a_busy_step_is_full(void **state)
{
    (void)state;
    world.b.work = 4; /* one more than its budget */
    assert_true(expect_turn(0, FULL_TURN));
    assert_true(expect_turn(1, FULL_TURN));
    assert_false(expect_turn(2, FULL_TURN));
    assert_false(expect_turn(3, SHORT_TURN));
}

static void test_commands_put_steps_off_for_a_limited_time(void **state)
{
    const uint64_t first_us = 1000, last_us = first_us + LOOP_STEPS_WAIT_US;

    (void)state;
    assert_false(expect_turn(0, FULL_TURN));
    world.c.commands = 1000;
    assert_true(expect_turn(first_us, SHORT_TURN));
    assert_true(expect_turn(first_us + 1, SHORT_TURN));
    assert_true(expect_turn(last_us - 1, SHORT_TURN));
    assert_true(expect_turn(last_us, FULL_TURN));
    assert_true(expect_turn(last_us + 1, SHORT_TURN));
}

static void test_steps_run_soon_after_the_last_command_too(void **state)
{
    (void)state;
    assert_false(expect_turn(0, FULL_TURN));
    world.a.commands = 1;
    assert_true(expect_turn(1000, SHORT_TURN));
    assert_false(expect_turn(1001, SHORT_TURN));
    expect_deadline(1000 + LOOP_STEPS_WAIT_US);
    assert_false(expect_turn(1000 + LOOP_STEPS_WAIT_US, FULL_TURN));
    expect_deadline(LOOP_NO_DEADLINE);
}

static void test_component_with_endless_work_starves_no_other(void **state)
{
    (void)state;
    world.a.commands = 1000000;
    world.b.work = 30;
    world.c.work = 100;
    for (unsigned int i = 0; i < 10; i++) {
        assert_true(loop_turn(&world.loop, i));
    }
    assert_int_equal(world.a.done, 100);
    assert_int_equal(world.b.done, 30);
    assert_int_equal(world.c.done, 100);
}

static void test_turn_is_full_when_a_deadline_of_a_step_has_come(void **state)
{
    (void)state;
    world.b.step_due_us = 300;
    assert_false(expect_turn(0, FULL_TURN));
    world.a.commands = 1;
    assert_true(expect_turn(298, SHORT_TURN));
    assert_false(expect_turn(299, SHORT_TURN));
    expect_deadline(300); /* turns without steps keep it */
    world.b.step_due_us = 0;
    assert_false(expect_turn(300, FULL_TURN));
    expect_deadline(LOOP_NO_DEADLINE);
}

static void test_arm_gives_the_earliest_deadline_of_the_last_turn(void **state)
{
    (void)state;
    world.a.step_due_us = 500;
    world.b.step_due_us = 300;
    assert_false(loop_turn(&world.loop, 0));
    expect_deadline(300);
    /* The deadline of an earlier turn is forgotten. */
    world.b.step_due_us = 900;
    assert_false(loop_turn(&world.loop, 301));
    expect_deadline(500);
}

static void test_polls_name_their_deadlines_in_every_turn(void **state)
{
    (void)state;
    assert_false(expect_turn(0, FULL_TURN));
    world.c.poll_due_us = 200;
    assert_false(expect_turn(100, SHORT_TURN));
    expect_deadline(200);
    world.c.poll_due_us = 700;
    assert_false(expect_turn(150, SHORT_TURN));
    expect_deadline(700);
}

static void test_arm_without_any_deadline_waits_for_interrupts(void **state)
{
    (void)state;
    assert_false(loop_turn(&world.loop, 0));
    expect_deadline(LOOP_NO_DEADLINE);
}

static void test_component_lowers_the_deadline_when_it_is_armed(void **state)
{
    (void)state;
    world.b.step_due_us = 900;
    world.c.arm_us = 400;
    assert_false(loop_turn(&world.loop, 0));
    expect_deadline(400);
}

static void test_component_that_refuses_keeps_the_hart_awake(void **state)
{
    uint64_t deadline_us;

    (void)state;
    world.c.refuses = true;
    assert_false(loop_arm(&world.loop, &deadline_us));
    assert_string_equal(world.calls, "a-arm c-arm");
    world.c.refuses = false;
    world.a.refuses = true;
    world.calls[0] = '\0';
    assert_false(loop_arm(&world.loop, &deadline_us));
    assert_string_equal(world.calls, "a-arm"); /* c need not be armed */
}

/*
 * The reason for the refusal may be work that only the step of the component
 * does.
 */
static void test_turn_after_a_refusal_is_full(void **state)
{
    uint64_t deadline_us;

    (void)state;
    assert_false(expect_turn(0, FULL_TURN));
    world.a.refuses = true;
    assert_false(loop_arm(&world.loop, &deadline_us));
    assert_false(expect_turn(1, FULL_TURN));
}

static void expect_time(uint64_t hal_us, uint64_t loop_us)
{
    loop_request_steps(&world.loop);
    (void)loop_turn(&world.loop, hal_us);
    assert_true(world.now_us == loop_us);
}

static void test_time_in_which_the_loop_was_held_back_is_left_out(void **state)
{
    const uint64_t pause_us = 5000000;

    (void)state;
    expect_time(1000, 1000);
    expect_time(1000 + LOOP_LATE_US, 1000 + LOOP_LATE_US);
    expect_time(1000 + LOOP_LATE_US + pause_us, 1000 + 2 * LOOP_LATE_US);
    assert_true(loop_left_out_us(&world.loop) == pause_us - LOOP_LATE_US);
    /* It stays left out, and the loop's time goes on. */
    expect_time(1001 + LOOP_LATE_US + pause_us, 1001 + 2 * LOOP_LATE_US);
}

static void test_time_of_a_planned_sleep_counts(void **state)
{
    (void)state;
    world.b.step_due_us = 3000000;
    expect_time(0, 0);
    expect_deadline(3000000);
    expect_time(3000000 + LOOP_LATE_US, 3000000 + LOOP_LATE_US);
    assert_true(loop_left_out_us(&world.loop) == 0);
}

static void test_pause_in_a_sleep_counts_only_up_to_the_deadline(void **state)
{
    (void)state;
    world.b.step_due_us = 1000000;
    expect_time(0, 0);
    expect_deadline(1000000);
    expect_time(31000000, 1000000 + LOOP_LATE_US);
    /* The hart's timer knows only the time of the HAL. */
    world.b.step_due_us = 2000000;
    expect_time(31000000, 1000000 + LOOP_LATE_US);
    expect_deadline(31000000 + 900000);
}

/* Some steps follow the time of the HAL. */
static void test_turn_before_which_time_is_left_out_is_full(void **state)
{
    (void)state;
    world.a.commands = 1000;
    assert_true(expect_turn(0, FULL_TURN));
    assert_true(expect_turn(1, SHORT_TURN));
    assert_true(expect_turn(5000000, FULL_TURN));
    assert_true(expect_turn(5000001, SHORT_TURN));
}

/* A component that asks for a time long ago wants to be called at once. */
static void test_deadline_in_the_past_does_not_hold_the_time_back(void **state)
{
    uint64_t deadline_us;

    (void)state;
    world.b.step_due_us = 1;
    expect_time(3000000, 3000000);
    for (unsigned int i = 1; i < 10; i++) {
        assert_true(loop_arm(&world.loop, &deadline_us));
        assert_true(deadline_us <= 3000000 + i);
        expect_time(3000000 + i, 3000000 + i);
    }
    assert_true(loop_left_out_us(&world.loop) == 0);
}

static void test_sleep_that_an_interrupt_ends_leaves_nothing_out(void **state)
{
    (void)state;
    world.b.step_due_us = 1000000;
    expect_time(0, 0);
    expect_deadline(1000000);
    expect_time(400000, 400000);
    assert_true(loop_left_out_us(&world.loop) == 0);
}

static void test_first_turn_is_never_late(void **state)
{
    (void)state;
    expect_time(1000000000, 1000000000);
}

static void test_sleep_without_a_deadline_leaves_nothing_out(void **state)
{
    (void)state;
    expect_time(0, 0);
    expect_deadline(LOOP_NO_DEADLINE);
    expect_time(1000000000, 1000000000);
}

static void test_interrupts_reach_every_component_that_wants_them(void **state)
{
    (void)state;
    loop_irqs(&world.loop, 0x24);
    assert_int_equal(world.a.irqs, 0x24);
    assert_int_equal(world.b.irqs, 0);
    assert_int_equal(world.c.irqs, 0x24);
}

static void test_interrupts_reach_only_components_that_have_their_lines(
    void **state)
{
    struct component component = complete;
    struct worker worker = {0};

    (void)state;
    component.irq_lines = 0x6;
    loop_add(&world.loop, &component, &worker);
    loop_irqs(&world.loop, 0x28);
    assert_int_equal(worker.irqs, 0);
    assert_int_equal(world.a.irqs, 0x28);
    loop_irqs(&world.loop, 0x24);
    assert_int_equal(worker.irqs, 0x24);
    loop_irqs(&world.loop, 0);
    assert_int_equal(world.a.irqs, 0x24);
}

static void test_turn_after_an_interrupt_is_full_if_a_step_has_to_run(
    void **state)
{
    (void)state;
    assert_false(expect_turn(0, FULL_TURN));
    loop_irqs(&world.loop, 0x24);
    assert_false(expect_turn(1, SHORT_TURN));
    world.a.wants_step = true;
    loop_irqs(&world.loop, 0x24);
    assert_false(expect_turn(2, FULL_TURN));
    assert_false(expect_turn(3, SHORT_TURN));
}

TEST_FIXTURE(new_world, NULL)
