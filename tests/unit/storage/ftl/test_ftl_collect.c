/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What garbage collection costs, and how it wears the flash, compared with
 * theory: tests/bench/collect_model.h.  All figures are counts of
 * operations, so they are the same in every run.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "lib/util.h"
#include "storage/ftl/base/ftl_policies.h"
#include "tests/bench/collect_model.h"

enum { WEAR_SPREAD = 8 };

static const struct collect_workload uniform = {"uniform", 100, 100};
static const struct collect_workload hot = {"80% to 20%", 20, 80};

static struct collect_result measure_cost(
    const struct collect_workload *workload, const char *victims,
    unsigned int percent)
{
    const struct collect_setup setup = {
        .workload = *workload,
        .victims = victims,
        .percent = percent,
        .blocks = 160,
        .writes = 4,
        .wear_spread = WEAR_SPREAD,
    };
    struct collect_result result;

    assert_true(collect_measure(&setup, &result));
    print_message("%s, %s, spare %.1f%%: cost %.3f, theory %.3f; erasures "
                  "%.2f, from cost %.2f, from theory %.2f, in all %u to %u\n",
                  workload->name, victims, result.spare, result.cost,
                  result.theory, result.erasures, result.erasures_from_cost,
                  result.erasures_from_theory, result.least, result.most);
    return result;
}

/* Whether a value is between `low` and `high` percent of another one. */
static bool is_percent_of(double value, double of, double low, double high)
{
    return value * 100 >= of * low && value * 100 <= of * high;
}

/* With little spare, the superblocks that are open are a larger part of it, so
 * collection costs more than theory says. */
static const struct {
    unsigned int percent;
    double most; /* percent of what theory says */
} spares[] = {{20, 110}, {35, 106}, {60, 103}};

static void check_uniform_writes(const char *victims)
{
    double last = 100;

    for (unsigned int i = 0; i < ARRAY_LEN(spares); i++) {
        struct collect_result result =
            measure_cost(&uniform, victims, spares[i].percent);

        assert_true(
            is_percent_of(result.cost, result.theory, 98, spares[i].most));
        /* Each erasure follows from a superblock that was filled, ... */
        assert_true(
            is_percent_of(result.erasures, result.erasures_from_cost, 99, 101));
        /* ... and no block is erased much more often than another one. */
        assert_in_range(result.most - result.least, 0, WEAR_SPREAD + 4);
        assert_true(result.cost < last * 0.9);
        last = result.cost;
    }
}

/* Under uniform writes all superblocks are alike, so theory's figure for greedy
 * collection is the best that any policy can reach. */
static void test_uniform_writes_cost_what_theory_says(void **state)
{
    (void)state;
    for (unsigned int row = 0; ftl_victim_policy(row) != NULL; row++) {
        check_uniform_writes(ftl_victim_policy(row)->name);
    }
}

/* This is why the drive collects by age. */
static void test_collection_by_age_costs_less_if_few_units_are_hot(void **state)
{
    (void)state;
    for (unsigned int i = 0; i < 2; i++) {
        double greedy = measure_cost(&hot, "greedy", spares[i].percent).cost;
        double by_age =
            measure_cost(&hot, "cost-benefit", spares[i].percent).cost;

        assert_true(is_percent_of(by_age, greedy, 0, 95));
    }
}

/* A policy that chose a stream that does not exist would spoil memory. */
static void test_every_policy_of_streams_chooses_one_that_exists(void **state)
{
    const struct ftl_stream_policy *policy;

    (void)state;
    for (unsigned int row = 0; (policy = ftl_stream_policy(row)) != NULL;
         row++) {
        uint8_t most = 0;

        assert_ptr_equal(ftl_find_stream_policy(policy->name), policy);
        for (int cause = 0; cause < FTL_CAUSES; cause++) {
            most = MAX(most, policy->choose((enum ftl_cause)cause));
        }
        /* A stream that is never chosen would be of no use. */
        assert_int_equal(most, policy->moved - 1);
        assert_in_range(policy->moved, 1, FTL_MOVED_STREAMS_MAX);
    }
}

/* The units that wear levelling moves stay valid for long. */
static void test_another_stream_does_not_cost_more(void **state)
{
    struct collect_setup setup = {
        .workload = {"95% to 5%", 5, 95},
        .percent = 20,
        .blocks = 80,
        .writes = 6,
        .wear_spread = 4,
        .streams = "by-source",
    };
    struct collect_result one, two;

    (void)state;
    assert_true(collect_measure(&setup, &one));
    setup.streams = "by-cause";
    assert_true(collect_measure(&setup, &two));
    print_message("by source: cost %.3f; by cause: cost %.3f\n", one.cost,
                  two.cost);
    assert_true(two.cost != one.cost);
    assert_true(is_percent_of(two.cost, one.cost, 80, 102));
    assert_in_range(two.most - two.least, 0, setup.wear_spread + 4);
}
