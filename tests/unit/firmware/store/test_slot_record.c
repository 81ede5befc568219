/* SPDX-License-Identifier: BSD-2-Clause */
/* When firmware on trial that cannot serve hosts resets the drive. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "firmware/store/slot_record.h"

static const bool all_good[SLOT_COUNT];

static void test_an_image_on_trial_gives_way_to_a_good_previous_one(
    void **state)
{
    struct slot_record record = {
        .chosen = 2, .previous = 1, .is_on_trial = true};

    (void)state;
    assert_true(slot_record_trial_fails(&record, 2, all_good));
    /* The boot ROM has already gone back. */
    assert_false(slot_record_trial_fails(&record, 1, all_good));
    record.is_on_trial = false;
    assert_false(slot_record_trial_fails(&record, 2, all_good));
}

static void test_without_a_good_previous_image_a_trial_goes_on(void **state)
{
    static const bool first_is_bad[SLOT_COUNT] = {true, false};
    static const bool second_is_bad[SLOT_COUNT] = {false, true};
    struct slot_record record = {
        .chosen = 2, .previous = 1, .is_on_trial = true};

    (void)state;
    assert_false(slot_record_trial_fails(&record, 2, first_is_bad));
    assert_true(slot_record_trial_fails(&record, 2, second_is_bad));
    record.previous = 0;
    assert_false(slot_record_trial_fails(&record, 2, all_good));
    record =
        (struct slot_record){.chosen = 1, .previous = 2, .is_on_trial = true};
    assert_false(slot_record_trial_fails(&record, 1, second_is_bad));
    assert_true(slot_record_trial_fails(&record, 1, first_is_bad));
}
