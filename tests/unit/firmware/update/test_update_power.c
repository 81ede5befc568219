/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The power fails at every byte of an update: the drive starts the old or the
 * new image, whole, and the update can be done again.
 */
#include "update_bed.h"

#include <stdlib.h>
#include <string.h>

#include "tests/test_fixture.h"

enum { STRIDE = 29 }; /* bytes between two cuts; UPDATE_STRIDE replaces it */

TEST_FIXTURE(begin_test, end_test)

static struct update_bed bed;
static struct bed_copy before;

static int begin_test(void **state)
{
    (void)state;
    bed_begin(&bed);
    return 0;
}

static int end_test(void **state)
{
    (void)state;
    bed_end(&bed);
    return 0;
}

/* Commit "new" with the power failing after `limit` bytes. */
static void commit_and_cut(uint8_t slot, bool activates, uint64_t limit)
{
    bed_restore(&bed, &before);
    bed_restart(&bed);
    bed_make_file(&bed, "new");
    bed.ram.limit = bed.ram.written + limit;
    bed_commit(&bed, slot, true, activates);
    for (int i = 0; !bed.is_done && !flash_ram_is_off(&bed.ram); i++) {
        assert_true(i < BED_STEPS_MAX);
        bed.now_us += 100;
        (void)updater_step(&bed.updater, bed.now_us);
    }
    bed.ram.limit = UINT64_MAX;
}

/* @param running, other  the images before the update */
static void sweep_commit(uint8_t slot, bool activates, const char *running,
                         const char *other)
{
    const char *text = getenv("UPDATE_STRIDE");
    uint64_t stride = text != NULL ? strtoull(text, NULL, 10) : STRIDE;
    uint64_t total;
    unsigned int news = 0, olds = 0;

    bed_keep(&bed, &before);
    commit_and_cut(slot, activates, UINT64_MAX / 2);
    assert_int_equal(bed.result, NVMF_FIRMWARE_OK);
    bed_restore(&bed, &before);
    bed_restart(&bed);
    total = bed.ram.written;
    commit_and_cut(slot, activates, UINT64_MAX / 2);
    total = bed.ram.written - total;
    for (uint64_t limit = 0; limit < total + stride; limit += stride) {
        bool is_new;

        commit_and_cut(slot, activates, limit);
        bed_restart(&bed);
        if (bed.running == 0) {
            fail_msg("nothing starts after a cut at byte %llu of %llu",
                     (unsigned long long)limit, (unsigned long long)total);
        }
        is_new = strcmp(bed_version(&bed), "new") == 0;
        if (!is_new && strcmp(bed_version(&bed), running) != 0 &&
            strcmp(bed_version(&bed), other) != 0) {
            fail_msg("%s starts after a cut at byte %llu", bed_version(&bed),
                     (unsigned long long)limit);
        }
        news += is_new;
        olds += !is_new;
        if (limit % (stride * 64) == 0) {
            /* The update is possible afterwards, in the slot that does not
             * run. */
            bed_make_file(&bed, "new");
            bed_expect_commit(&bed, 0, true, true, NVMF_FIRMWARE_OK);
            bed_restart(&bed);
            assert_string_equal(bed_version(&bed), "new");
        }
    }
    assert_true(olds > 0);
    assert_int_equal(news != 0, activates);
    print_message("%llu bytes: %u cuts start the old image, %u the new one\n",
                  (unsigned long long)total, olds, news);
}

static void test_a_cut_of_the_first_update_leaves_a_drive_that_starts(
    void **state)
{
    (void)state;
    sweep_commit(2, true, "old-a", "old-a");
}

static void test_a_cut_while_the_running_slot_is_written_starts_the_other(
    void **state)
{
    (void)state;
    sweep_commit(1, true, "old-a", "old-b");
}

static void test_a_cut_of_a_later_update_leaves_a_drive_that_starts(
    void **state)
{
    (void)state;
    bed_make_file(&bed, "middle");
    bed_expect_commit(&bed, 2, true, true, NVMF_FIRMWARE_OK);
    bed_restart(&bed);
    assert_string_equal(bed_version(&bed), "middle");
    bed_pass(&bed, UPDATE_TRIAL_US);
    sweep_commit(1, true, "middle", "middle");
}

static void test_a_cut_while_an_image_is_only_stored_starts_the_old_one(
    void **state)
{
    (void)state;
    sweep_commit(2, false, "old-a", "old-a");
}

/* The boot ROM's own writes: each start of the trial may be cut, too. */
static void test_cuts_of_the_boot_rom_do_not_stop_the_drive(void **state)
{
    (void)state;
    bed_make_file(&bed, "new");
    bed_expect_commit(&bed, 2, true, true, NVMF_FIRMWARE_OK);
    for (unsigned int starts = 0; starts <= SLOT_ATTEMPTS; starts++) {
        bed_keep(&bed, &before);
        for (uint64_t limit = 0; limit < 4096 + 96; limit++) {
            bed_restore(&bed, &before);
            bed.ram.limit = bed.ram.written + limit;
            bed_restart(&bed);
            bed.ram.limit = UINT64_MAX;
            bed_restart(&bed);
            assert_int_not_equal(bed.running, 0);
            assert_true(strcmp(bed_version(&bed), "new") == 0 ||
                        strcmp(bed_version(&bed), "old-a") == 0);
        }
        bed_restore(&bed, &before);
        bed_restart(&bed);
    }
    assert_string_equal(bed_version(&bed), "old-a");
}
