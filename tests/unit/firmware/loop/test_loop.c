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

/* A component that writes down what the loop asks of it. */
struct worker {
    const char *name;
    uint32_t work;   /* units that wait for it */
    uint64_t due_us; /* what it asks for in each step; 0: nothing */
    uint64_t arm_us; /* what it lowers the deadline to when armed; 0: nothing */
    bool objects;    /* to a sleep */
    uint32_t done;   /* units, in all */
    uint32_t irqs;
};

static struct {
    struct loop loop;
    struct worker a, b, c;
    char calls[256];
    uint64_t now_us; /* that the last step was told */
} world;

static void note_call(const struct worker *worker, const char *what)
{
    size_t len = strlen(world.calls);

    snprintf(world.calls + len, sizeof(world.calls) - len, "%s%s%s",
             len != 0 ? " " : "", worker->name, what);
}

static bool worker_step(void *ctx, struct loop_step *step)
{
    struct worker *worker = ctx;
    uint32_t count = MIN(worker->work, step->budget);

    note_call(worker, "");
    world.now_us = step->now_us;
    worker->work -= count;
    worker->done += count;
    if (worker->due_us != 0) {
        loop_call_at(step, worker->due_us);
    }
    return count != 0;
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
    return !worker->objects;
}

static void worker_irqs(void *ctx, uint32_t irqs)
{
    ((struct worker *)ctx)->irqs = irqs;
}

static const struct component full = {
    .name = "full",
    .budget = 10,
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

/* a and c have everything, b has a step only. */
static int new_world(void **state)
{
    (void)state;
    memset(&world, 0, sizeof(world));
    world.a.name = "a";
    world.b.name = "b";
    world.c.name = "c";
    loop_init(&world.loop);
    loop_add(&world.loop, &full, &world.a);
    loop_add(&world.loop, &bare, &world.b);
    loop_add(&world.loop, &full, &world.c);
    return 0;
}

static void test_turn_calls_steps_in_order_and_flushes_after_them(void **state)
{
    (void)state;
    assert_false(loop_turn(&world.loop, 77));
    assert_string_equal(world.calls, "a b c a-flush c-flush");
    assert_int_equal(world.now_us, 77);
}

static void test_turn_is_busy_if_one_component_had_work(void **state)
{
    struct worker *const workers[] = {&world.a, &world.b, &world.c};

    (void)state;
    for (unsigned int i = 0; i < ARRAY_LEN(workers); i++) {
        workers[i]->work = 1;
        assert_true(loop_turn(&world.loop, 0));
        assert_false(loop_turn(&world.loop, 0));
    }
}

static void test_component_with_endless_work_starves_no_other(void **state)
{
    (void)state;
    world.a.work = 1000000;
    world.b.work = 30;
    world.c.work = 100;
    for (unsigned int i = 0; i < 10; i++) {
        assert_true(loop_turn(&world.loop, i));
    }
    assert_int_equal(world.a.done, 100);
    assert_int_equal(world.b.done, 30);
    assert_int_equal(world.c.done, 100);
}

static void test_arm_gives_the_earliest_deadline_of_the_last_turn(void **state)
{
    uint64_t deadline_us;

    (void)state;
    world.a.due_us = 500;
    world.b.due_us = 300;
    assert_false(loop_turn(&world.loop, 0));
    assert_true(loop_arm(&world.loop, &deadline_us));
    assert_int_equal(deadline_us, 300);
    world.b.due_us = 900; /* what an earlier turn asked for is forgotten */
    assert_false(loop_turn(&world.loop, 301));
    assert_true(loop_arm(&world.loop, &deadline_us));
    assert_int_equal(deadline_us, 500);
}

static void test_arm_without_any_deadline_waits_for_interrupts(void **state)
{
    uint64_t deadline_us;

    (void)state;
    assert_true(loop_arm(&world.loop, &deadline_us));
    assert_true(deadline_us == LOOP_NO_DEADLINE);
    assert_false(loop_turn(&world.loop, 0));
    assert_true(loop_arm(&world.loop, &deadline_us));
    assert_true(deadline_us == LOOP_NO_DEADLINE);
}

static void test_component_lowers_the_deadline_when_it_is_armed(void **state)
{
    uint64_t deadline_us;

    (void)state;
    world.b.due_us = 900;
    world.c.arm_us = 400;
    assert_false(loop_turn(&world.loop, 0));
    assert_true(loop_arm(&world.loop, &deadline_us));
    assert_int_equal(deadline_us, 400);
}

static void test_component_that_objects_keeps_the_hart_awake(void **state)
{
    uint64_t deadline_us;

    (void)state;
    world.c.objects = true;
    assert_false(loop_arm(&world.loop, &deadline_us));
    assert_string_equal(world.calls, "a-arm c-arm");
    world.c.objects = false;
    world.a.objects = true;
    world.calls[0] = '\0';
    assert_false(loop_arm(&world.loop, &deadline_us));
    assert_string_equal(world.calls, "a-arm"); /* c need not be armed */
}

static void test_interrupts_reach_every_component_that_wants_them(void **state)
{
    (void)state;
    loop_irqs(&world.loop, 0x24);
    assert_int_equal(world.a.irqs, 0x24);
    assert_int_equal(world.b.irqs, 0);
    assert_int_equal(world.c.irqs, 0x24);
}

TEST_FIXTURE(new_world, NULL)
