/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "nvmeof/binding.h"
#include "tests/test_fixture.h"

struct fake {
    uint64_t now_us, next_us;
    unsigned int steps;
    bool has_work;
    enum nvmf_turn turn;
    uint8_t service, laddr;
    uint16_t portid;
    uint32_t link;
    unsigned int changes;
    uint32_t asked; /* number of the request that was asked for last */
};

static void fake_tick(void *ctx, uint64_t now_us)
{
    ((struct fake *)ctx)->now_us = now_us;
}

static bool fake_step(void *ctx)
{
    struct fake *fake = ctx;

    fake->steps++;
    return fake->has_work;
}

static uint64_t fake_watch(void *ctx)
{
    return ((struct fake *)ctx)->next_us;
}

static enum nvmf_turn fake_needs_turn(const void *ctx)
{
    return ((const struct fake *)ctx)->turn;
}

static void fake_set_address(void *ctx, uint8_t service, uint8_t laddr,
                             uint16_t portid, uint32_t link)
{
    struct fake *fake = ctx;

    assert_int_equal(service, fake->changes); /* each one once, in order */
    fake->changes++;
    fake->service = service;
    fake->laddr = laddr;
    fake->portid = portid;
    fake->link = link;
}

/* The fake itself stands for its requests. */
static const struct nvmf_transfer *fake_request(const void *ctx,
                                                uint32_t number)
{
    /* The list's context is not const. */
    struct fake *fake = (struct fake *)(uintptr_t)ctx;

    fake->asked = number;
    return ctx;
}

static const struct nvmf_binding_ops fake_ops = {
    .tick = fake_tick,
    .step = fake_step,
    .watch = fake_watch,
    .needs_turn = fake_needs_turn,
    .set_address = fake_set_address,
    .request = fake_request,
};

struct fixture {
    struct fake first, second;
    struct nvmf_bindings list;
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    const struct nvmf_binding first = {&fake_ops, &f->first, 2, 100},
                              second = {&fake_ops, &f->second, 1, 10};

    nvmf_bindings_add(&f->list, first);
    nvmf_bindings_add(&f->list, second);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    free(*state);
    return 0;
}

static void test_an_empty_list_needs_no_turn(void **state)
{
    const struct nvmf_bindings none = {0};

    (void)state;
    nvmf_bindings_tick(&none, 1);
    assert_false(nvmf_bindings_step(&none));
    assert_true(nvmf_bindings_watch(&none) == UINT64_MAX);
    assert_int_equal(nvmf_bindings_need_turn(&none), NVMF_TURN_NOT_NEEDED);
    assert_int_equal(none.requests, 0);
}

static void test_every_transport_gets_the_time_and_its_step(void **state)
{
    struct fixture *f = *state;

    nvmf_bindings_tick(&f->list, 77);
    assert_int_equal(f->first.now_us, 77);
    assert_int_equal(f->second.now_us, 77);
    assert_false(nvmf_bindings_step(&f->list));
    f->first.has_work = true; /* does not keep the second from its step */
    assert_true(nvmf_bindings_step(&f->list));
    f->first.has_work = false;
    f->second.has_work = true;
    assert_true(nvmf_bindings_step(&f->list));
    assert_int_equal(f->first.steps, 3);
    assert_int_equal(f->second.steps, 3);
}

static void test_the_earliest_watch_counts(void **state)
{
    struct fixture *f = *state;

    f->first.next_us = 10;
    f->second.next_us = 20;
    assert_int_equal(nvmf_bindings_watch(&f->list), 10);
    f->second.next_us = 5;
    assert_int_equal(nvmf_bindings_watch(&f->list), 5);
}

static void test_the_most_urgent_turn_counts(void **state)
{
    struct fixture *f = *state;

    for (int a = NVMF_TURN_NOT_NEEDED; a <= NVMF_TURN_IS_NEEDED; a++) {
        for (int b = NVMF_TURN_NOT_NEEDED; b <= NVMF_TURN_IS_NEEDED; b++) {
            f->first.turn = (enum nvmf_turn)a;
            f->second.turn = (enum nvmf_turn)b;
            assert_int_equal(nvmf_bindings_need_turn(&f->list), MAX(a, b));
        }
    }
}

static void test_every_service_is_told_of_an_address(void **state)
{
    struct fixture *f = *state;

    nvmf_bindings_set_address(&f->list, 3, 2, 9);
    assert_int_equal(f->first.changes, 2);
    assert_int_equal(f->second.changes, 1);
    assert_int_equal(f->second.laddr, 3);
    assert_int_equal(f->second.portid, 2);
    assert_int_equal(f->second.link, 9);
}

static void test_requests_are_numbered_through_all_transports(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(f->list.requests, 110);
    assert_ptr_equal(nvmf_bindings_request(&f->list, 0), &f->first);
    assert_ptr_equal(nvmf_bindings_request(&f->list, 99), &f->first);
    assert_int_equal(f->first.asked, 99);
    assert_ptr_equal(nvmf_bindings_request(&f->list, 100), &f->second);
    assert_int_equal(f->second.asked, 0);
    assert_ptr_equal(nvmf_bindings_request(&f->list, 109), &f->second);
    assert_int_equal(f->second.asked, 9);
}

TEST_FIXTURE(setup, teardown)
