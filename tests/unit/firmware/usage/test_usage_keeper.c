/* SPDX-License-Identifier: BSD-2-Clause */
/* When usage records and error log entries are written, with a fake target. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "firmware/usage/usage_keeper.h"
#include "nvmeof/wire/log.h"
#include "tests/test_fixture.h"

#define SECOND_US UINT64_C(1000000)
#define MINUTE_US (60 * SECOND_US)
#define HOUR_US   (60 * MINUTE_US)

enum { START = 7 }; /* the number of the start */

static struct {
    struct usage_keeper keeper;
    uint64_t now_us;

    struct nvmf_counters counters; /* counters of the target */
    bool is_in_use;
    uint64_t hours;
    unsigned int restored;
    struct log_error last_restored;
    uint64_t oldest_error; /* older errors are no longer in the target's log */

    struct usage saved; /* contents of the flash */
    unsigned int saves;
    /* The numbers of the saved errors. */
    uint64_t saved_errors[2 * NVMF_ERROR_LOG_ENTRIES];
    unsigned int saved_error_count;
} world;

/* ---- The target. */

const struct nvmf_counters *nvmf_target_counters(
    const struct nvmf_target *target)
{
    (void)target;
    return &world.counters;
}

bool nvmf_target_is_in_use(const struct nvmf_target *target)
{
    (void)target;
    return world.is_in_use;
}

void nvmf_target_set_power_on_hours(struct nvmf_target *target, uint64_t hours)
{
    (void)target;
    world.hours = hours;
}

bool nvmf_target_error_after(const struct nvmf_target *target, uint64_t count,
                             struct log_error *error)
{
    (void)target;
    count = MAX(count + 1, world.oldest_error);
    *error = (struct log_error){
        .count = count, .lba = count + 1000, .owner = (uint32_t)count + 5};
    return count <= world.counters.error_log_entries;
}

void nvmf_target_restore_error(struct nvmf_target *target,
                               const struct log_error *error)
{
    (void)target;
    world.restored++;
    world.last_restored = *error;
}

/* ---- The flash. */

static bool save_usage(void *ctx, const struct usage *usage)
{
    assert_ptr_equal(ctx, &world);
    world.saved = *usage;
    world.saves++;
    return true;
}

static bool save_error(void *ctx, const struct error_record *record)
{
    assert_ptr_equal(ctx, &world);
    assert_true(world.saved_error_count < ARRAY_LEN(world.saved_errors));
    assert_int_equal(record->lba, record->count + 1000);
    assert_int_equal(record->owner, record->count + 5);
    world.saved_errors[world.saved_error_count++] = record->count;
    return true;
}

/* ---- The keeper. */

static void start_keeper(const struct usage *usage, bool is_power_on)
{
    const struct usage_keeper_config config = {
        .usage = usage,
        .is_power_on = is_power_on,
        .start = START,
        .save = save_usage,
        .save_error = save_error,
        .save_ctx = &world,
    };

    usage_keeper_init(&world.keeper, &config, world.now_us);
    usage_keeper_start(&world.keeper, NULL);
}

/* Take one step.  No step writes more than a few records. */
static uint64_t step_keeper(void)
{
    unsigned int before = world.saves + world.saved_error_count;
    uint64_t next_us = usage_keeper_step(&world.keeper, world.now_us);

    assert_in_range(world.saves + world.saved_error_count - before, 0, 5);
    assert_true(next_us >= world.now_us);
    return next_us;
}

/* Let time pass as the main loop does: with a step at every deadline. */
static void run_until(uint64_t until_us)
{
    uint64_t next_us = world.now_us;

    while (next_us <= until_us) {
        world.now_us = next_us;
        next_us = step_keeper();
    }
    world.now_us = until_us;
    while (step_keeper() <= world.now_us) {
    }
}

static void pass_time(uint64_t us)
{
    run_until(world.now_us + us);
}

static int new_world(void **state)
{
    (void)state;
    memset(&world, 0, sizeof(world));
    world.now_us = SECOND_US;
    return 0;
}

static void test_an_idle_drive_writes_once_an_hour(void **state)
{
    (void)state;
    start_keeper(NULL, true);
    pass_time(59 * MINUTE_US);
    assert_int_equal(world.saves, 0);
    pass_time(3 * HOUR_US);
    assert_int_equal(world.saves, 3);
    assert_int_equal(world.saved.on_minutes, 180);
    assert_int_equal(world.hours, 3);
}

static void test_hours_continue_from_the_saved_value(void **state)
{
    const struct usage before = {.on_minutes = 59};

    (void)state;
    start_keeper(&before, true);
    pass_time(HOUR_US);
    assert_int_equal(world.saved.on_minutes, 119);
    assert_int_equal(world.hours, 1);
}

static void test_the_first_host_and_its_end_are_recorded_at_once(void **state)
{
    (void)state;
    start_keeper(NULL, true);
    world.is_in_use = true;
    pass_time(SECOND_US);
    assert_int_equal(world.saves, 1);
    assert_true(world.saved.is_in_use);
    world.is_in_use = false;
    pass_time(SECOND_US);
    assert_int_equal(world.saves, 2);
    assert_false(world.saved.is_in_use);
}

static void test_a_power_cut_in_use_counts_as_unsafe(void **state)
{
    const struct usage before = {.is_in_use = true, .unsafe_shutdowns = 4};

    (void)state;
    start_keeper(&before, true);
    pass_time(SECOND_US);
    assert_int_equal(world.saved.unsafe_shutdowns, 5);
    assert_false(world.saved.is_in_use);
}

static void test_a_reset_in_use_is_not_a_power_cut(void **state)
{
    const struct usage before = {.is_in_use = true, .unsafe_shutdowns = 4};
    struct nvmf_counters counters;
    struct nvmf_health health = {0};

    (void)state;
    start_keeper(&before, false);
    pass_time(SECOND_US);
    usage_keeper_fill(&world.keeper, &health, &counters);
    assert_int_equal(health.unsafe_shutdowns, 4);
}

static void test_the_start_in_which_hosts_use_the_drive_is_recorded(
    void **state)
{
    const struct usage before = {.is_in_use = true, .in_use_start = START - 1};

    (void)state;
    start_keeper(&before, true);
    assert_int_equal(usage_keeper_unsafe_start(&world.keeper), START - 1);
    world.is_in_use = true;
    pass_time(SECOND_US);
    assert_true(world.saved.is_in_use);
    assert_int_equal(world.saved.in_use_start, START);
    assert_int_equal(world.saves, 1);
}

/* Hosts used the drive before the reset, and come back. */
static void test_hosts_after_a_reset_are_recorded_once_more(void **state)
{
    const struct usage before = {.is_in_use = true, .in_use_start = START - 1};

    (void)state;
    start_keeper(&before, false);
    assert_int_equal(usage_keeper_unsafe_start(&world.keeper), 0);
    world.is_in_use = true;
    pass_time(HOUR_US / 2);
    assert_int_equal(world.saves, 1);
    assert_int_equal(world.saved.in_use_start, START);
}

static void test_a_power_off_says_whether_the_medium_was_flushed(void **state)
{
    struct usage saved;

    (void)state;
    for (unsigned int i = 0; i < 2; i++) {
        start_keeper(NULL, true);
        world.is_in_use = true;
        pass_time(SECOND_US);
        usage_keeper_stop(&world.keeper, i != 0, world.now_us);
        assert_true(world.saved.is_in_use);
        saved = world.saved;
        start_keeper(&saved, true);
        assert_true(usage_keeper_was_unsafe(&world.keeper));
        assert_int_equal(usage_keeper_unsafe_start(&world.keeper),
                         i != 0 ? 0 : START);
    }
}

/* Whatever hosts do, there are 8 records at once, then one in five minutes. */
static void test_wear_has_a_limit(void **state)
{
    (void)state;
    start_keeper(NULL, true);
    for (unsigned int i = 0; i < 6000; i++) { /* for ten minutes */
        world.is_in_use = !world.is_in_use;
        pass_time(SECOND_US / 10);
    }
    assert_in_range(world.saves, 8, 10);
}

/* One record is reserved for the first host, however many hosts have gone. */
static void test_the_first_host_is_recorded_at_once_despite_errors(void **state)
{
    (void)state;
    start_keeper(NULL, true);
    for (unsigned int i = 0; i < 20; i++) {
        world.counters.media_errors++;
        world.counters.error_log_entries++;
        pass_time(SECOND_US);
    }
    assert_int_equal(world.saves, 7);
    world.is_in_use = true;
    pass_time(SECOND_US);
    assert_int_equal(world.saves, 8);
    assert_true(world.saved.is_in_use);
}

static void test_the_generation_of_unreadable_blocks_is_recorded(void **state)
{
    (void)state;
    start_keeper(NULL, true);
    world.counters.lba_generation = 7;
    pass_time(SECOND_US);
    assert_int_equal(world.saves, 1);
    assert_int_equal(world.saved.lba_generation, 7);
}

static void test_new_errors_are_written_oldest_first(void **state)
{
    (void)state;
    world.oldest_error = 1;
    start_keeper(NULL, true);
    world.counters.error_log_entries = 3;
    pass_time(SECOND_US);
    assert_int_equal(world.saved_error_count, 3);
    for (unsigned int i = 0; i < 3; i++) {
        assert_int_equal(world.saved_errors[i], i + 1);
    }
    world.counters.error_log_entries = 4;
    pass_time(USAGE_PACE_MINUTES * MINUTE_US + SECOND_US);
    assert_int_equal(world.saved_error_count, 4);
    assert_int_equal(world.saved.error_log_entries, 4);
}

static void test_no_more_errors_are_written_than_a_host_can_read(void **state)
{
    (void)state;
    world.oldest_error = 1000 - NVMF_ERROR_LOG_ENTRIES + 1;
    start_keeper(NULL, true);
    world.counters.error_log_entries = 1000;
    pass_time(SECOND_US);
    assert_int_equal(world.saved_error_count, NVMF_ERROR_LOG_ENTRIES);
    assert_int_equal(world.saved_errors[0], world.oldest_error);
}

/* A start reads the newest records only.  So an old entry that is still in the
 * log is written again before many others follow it. */
static void test_the_whole_log_is_written_again(void **state)
{
    unsigned int since = 0, again = 0;

    (void)state;
    world.oldest_error = 1;
    start_keeper(NULL, true);
    for (unsigned int i = 0; i < 100; i++) {
        world.counters.error_log_entries++;
        world.oldest_error = MAX(world.counters.error_log_entries,
                                 (uint64_t)NVMF_ERROR_LOG_ENTRIES) -
                             NVMF_ERROR_LOG_ENTRIES + 1;
        world.saved_error_count = 0;
        pass_time(USAGE_PACE_MINUTES * MINUTE_US + SECOND_US);
        again += world.saved_error_count > 1;
        since = world.saved_error_count > 1 ? 0 : since + 1;
        assert_true(since <= NVMF_ERROR_LOG_ENTRIES);
        if (world.saved_error_count > 1) {
            assert_int_equal(world.saved_error_count, NVMF_ERROR_LOG_ENTRIES);
            assert_int_equal(world.saved_errors[0], world.oldest_error);
        }
    }
    assert_int_equal(again, 1);
}

static void test_errors_of_an_earlier_power_cycle_are_restored(void **state)
{
    const struct error_records errors = {
        .record = {{.count = 7, .lba = 1}, {.count = 8, .lba = 2, .cid = 9}},
        .count = 2,
    };
    const struct usage before = {.error_log_entries = 8};
    const struct usage_keeper_config config = {
        .usage = &before,
        .errors = &errors,
        .save_error = save_error,
        .save_ctx = &world,
    };

    (void)state;
    world.counters.error_log_entries = 8;
    usage_keeper_init(&world.keeper, &config, world.now_us);
    usage_keeper_start(&world.keeper, NULL);
    assert_int_equal(world.restored, 2);
    assert_int_equal(world.last_restored.count, 8);
    assert_int_equal(world.last_restored.cid, 9);
    pass_time(HOUR_US);
    /* The flash has them already. */
    assert_int_equal(world.saved_error_count, 0);
}

static void test_an_orderly_power_off_writes_everything(void **state)
{
    (void)state;
    start_keeper(NULL, true);
    world.is_in_use = true;
    pass_time(SECOND_US);
    world.is_in_use = false;
    world.counters.host_reads = 12;
    world.counters.read_blocks_512 = 34;
    usage_keeper_stop(&world.keeper, true, world.now_us);
    assert_false(world.saved.is_in_use);
    assert_int_equal(world.saved.host_reads, 12);
    assert_int_equal(world.saved.read_blocks_512, 34);
}

static void test_a_drive_without_flash_keeps_working(void **state)
{
    const struct usage_keeper_config config = {0};

    (void)state;
    usage_keeper_init(&world.keeper, &config, world.now_us);
    usage_keeper_start(&world.keeper, NULL);
    world.is_in_use = true;
    world.counters.error_log_entries = 1;
    pass_time(2 * HOUR_US);
    usage_keeper_stop(&world.keeper, true, world.now_us);
    assert_int_equal(world.saves, 0);
    assert_int_equal(world.hours, 2);
}

TEST_FIXTURE(new_world, NULL)
