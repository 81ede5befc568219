/* SPDX-License-Identifier: BSD-2-Clause */
/* Commits, refused images, and the trial of a new image. */
#include "update_bed.h"

#include <string.h>

#include "lib/bytes.h"
#include "lib/crc32.h"
#include "tests/test_fixture.h"

TEST_FIXTURE(begin_test, end_test)

static struct update_bed bed;

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

static struct nvmf_firmware_now slots_now(void)
{
    struct nvmf_firmware seam = updater_seam(&bed.updater);
    struct nvmf_firmware_now found;

    seam.describe(seam.ctx, &found);
    return found;
}

static void test_an_image_that_is_activated_starts_after_a_reset(void **state)
{
    (void)state;
    assert_string_equal(bed_version(&bed), "old-a");
    assert_int_equal(updater_next(&bed.updater), 0);
    bed_make_file(&bed, "new");
    bed_expect_commit(&bed, 0, true, true, NVMF_FIRMWARE_OK);
    assert_int_equal(bed.done_slot, 2);
    assert_int_equal(updater_next(&bed.updater), 2);
    assert_int_equal(slots_now().active, 1);
    assert_int_equal(slots_now().next, 2);
    assert_string_equal(slots_now().revision[1], "new");
    bed_restart(&bed);
    assert_string_equal(bed_version(&bed), "new");
    assert_int_equal(slots_now().active, 2);
    assert_int_equal(slots_now().next, 0);
}

static void test_a_slot_whose_image_is_damaged_does_not_start(void **state)
{
    (void)state;
    bed.ram.inverted[FLASH_SLOT_A_ADDR + FLASH_SLOT_IMAGE_OFFSET + 100] ^= 1;
    bed_restart(&bed);
    assert_int_equal(bed.slots.slot[0].verdict, SYSCTL_VERDICT_IMAGE_CRC);
    assert_string_equal(bed_version(&bed), "old-b");
    bed.ram.inverted[FLASH_SLOT_B_ADDR + FLASH_SLOT_IMAGE_OFFSET + 100] ^= 1;
    bed_restart(&bed);
    assert_int_equal(bed.running, 0);
}

/* The last bytes of an image may be a part of such a word.  Writing them would
 * fail at every start. */
static void test_lost_words_are_cleared_before_an_image_is_loaded(void **state)
{
    (void)state;
    bed.cleared_bytes = 0;
    bed_restart(&bed);
    assert_int_not_equal(bed.running, 0);
    assert_ptr_equal(bed.cleared, bed.dram);
    assert_int_equal(bed.cleared_bytes,
                     bed.slots.slot[bed.running - 1].header.len_bytes);
}

static void test_an_image_that_is_only_stored_does_not_start(void **state)
{
    (void)state;
    bed_make_file(&bed, "new");
    bed_expect_commit(&bed, 2, true, false, NVMF_FIRMWARE_OK);
    assert_int_equal(slots_now().next, 0);
    bed_restart(&bed);
    assert_string_equal(bed_version(&bed), "old-a");
    bed_expect_commit(&bed, 2, false, true, NVMF_FIRMWARE_OK);
    assert_int_equal(slots_now().next, 2);
    bed_restart(&bed);
    assert_string_equal(bed_version(&bed), "new");
}

/* The write buffer in DRAM has the layout of the image that ran before. */
static void test_an_activated_image_waits_for_an_orderly_reset(void **state)
{
    (void)state;
    bed_make_file(&bed, "new");
    bed_expect_commit(&bed, 2, true, true, NVMF_FIRMWARE_OK);
    bed.is_unplanned = true;
    for (unsigned int i = 0; i < SLOT_ATTEMPTS + 1; i++) {
        bed_restart(&bed);
        assert_string_equal(bed_version(&bed), "old-a");
        assert_int_equal(bed.updater.slots.record.failed, 0);
        assert_int_equal(updater_next(&bed.updater), 2);
        assert_false(updater_is_on_trial(&bed.updater));
    }
    bed.is_unplanned = false;
    bed_restart(&bed);
    assert_string_equal(bed_version(&bed), "new");
    bed.is_unplanned = true; /* It hangs: its trial goes on. */
    bed_restart(&bed);
    assert_string_equal(bed_version(&bed), "new");
    assert_true(updater_is_on_trial(&bed.updater));
    bed.is_unplanned = false;
}

static void test_an_image_on_trial_that_never_stays_is_given_up(void **state)
{
    (void)state;
    bed_make_file(&bed, "new");
    bed_expect_commit(&bed, 2, true, true, NVMF_FIRMWARE_OK);
    for (unsigned int i = 0; i < SLOT_ATTEMPTS; i++) {
        bed_restart(&bed);
        assert_string_equal(bed_version(&bed), "new");
        bed_pass(&bed, UPDATE_TRIAL_US - 1);
    }
    bed_restart(&bed);
    assert_string_equal(bed_version(&bed), "old-a");
    assert_int_equal(bed.updater.slots.record.failed, 2);
    assert_int_equal(bed.updater.slots.record.failure, SLOT_FAILURE_TRIAL);
    log_flush(&bed.log);
    assert_true(bed_has_logged(&bed, "never ran for long enough"));
    bed_restart(&bed); /* it is reported once */
    log_flush(&bed.log);
    assert_false(bed_has_logged(&bed, "never ran for long enough"));
    assert_string_equal(bed_version(&bed), "old-a");
}

static void test_an_image_that_runs_for_long_enough_stays(void **state)
{
    (void)state;
    bed_make_file(&bed, "new");
    bed_expect_commit(&bed, 2, true, true, NVMF_FIRMWARE_OK);
    bed_restart(&bed);
    assert_true(updater_is_on_trial(&bed.updater));
    bed_pass(&bed, UPDATE_TRIAL_US);
    assert_false(updater_is_on_trial(&bed.updater));
    for (unsigned int i = 0; i < SLOT_ATTEMPTS + 2; i++) {
        bed_restart(&bed);
        assert_string_equal(bed_version(&bed), "new");
    }
}

static void test_without_another_image_a_trial_goes_on(void **state)
{
    (void)state;
    bed_make_file(&bed, "new");
    bed_expect_commit(&bed, 2, true, true, NVMF_FIRMWARE_OK);
    assert_true(flash_erase_sector(&bed.ram.flash, slot_addr(1)));
    for (unsigned int i = 0; i < SLOT_ATTEMPTS + 2; i++) {
        bed_restart(&bed);
        assert_string_equal(bed_version(&bed), "new");
    }
}

static void test_the_last_good_image_is_never_overwritten(void **state)
{
    (void)state;
    assert_true(flash_program(&bed.ram.flash, slot_addr(2) + 5000, "\0", 1));
    bed_restart(&bed);
    assert_string_equal(bed_version(&bed), "old-a");
    bed_make_file(&bed, "new");
    /* Slot B looks good, until its image is read. */
    bed_expect_commit(&bed, 1, true, true, NVMF_FIRMWARE_READ_ONLY);
    assert_true(bed_has_logged(&bed, "the other slot holds no good image"));
    bed_restart(&bed);
    assert_string_equal(bed_version(&bed), "old-a");
    bed_expect_commit(&bed, 2, true, true, NVMF_FIRMWARE_OK);
}

static void test_a_read_only_slot_is_not_written(void **state)
{
    uint32_t sequence = bed.updater.slots.sequence;
    struct slot_record record = {
        .chosen = 2, .previous = 1, .is_a_read_only = true};

    (void)state;
    assert_true(slot_record_write(&bed.ram.flash, &record, &sequence));
    bed_restart(&bed);
    assert_string_equal(bed_version(&bed), "old-b");
    assert_true(slots_now().is_first_read_only);
    bed_make_file(&bed, "new");
    bed_expect_commit(&bed, 1, true, true, NVMF_FIRMWARE_READ_ONLY);
    bed_expect_commit(&bed, 1, false, true, NVMF_FIRMWARE_OK);
}

static void test_each_bad_image_is_refused_with_its_reason(void **state)
{
    static const struct {
        size_t at; /* in the file */
        uint32_t value;
        const char *reason;
        enum nvmf_firmware_result result;
    } rows[] = {
        {0, 0, "does not begin with the header", NVMF_FIRMWARE_INVALID},
        {8, 9, "unknown version", NVMF_FIRMWARE_INVALID},
        {32, 0x20000, "does not fit", NVMF_FIRMWARE_INVALID},
        {32, 0, "does not fit", NVMF_FIRMWARE_INVALID},
        {32, 0xffffffff, "does not fit", NVMF_FIRMWARE_INVALID},
        {32, 0xfffff000, "does not fit", NVMF_FIRMWARE_INVALID},
        /* Load address: below the DRAM, too high, 2^63 too high. */
        {16, 0x7fffffff, "does not fit", NVMF_FIRMWARE_INVALID},
        {16, 0x80000000 + BED_DRAM_BYTES - 8999, "does not fit",
         NVMF_FIRMWARE_INVALID},
        {20, 0x80000000, "does not fit", NVMF_FIRMWARE_INVALID},
        {20, 0xffffffff, "does not fit", NVMF_FIRMWARE_INVALID},
        /* Entry point: before the image, behind it, odd, 2^32 too high. */
        {24, 0x7ffffffc, "does not fit", NVMF_FIRMWARE_INVALID},
        {24, 0x80000000 + 9000, "does not fit", NVMF_FIRMWARE_INVALID},
        {24, 0x80000002, "does not fit", NVMF_FIRMWARE_INVALID},
        {28, 1, "does not fit", NVMF_FIRMWARE_INVALID},
        {32, 20000, "another length", NVMF_FIRMWARE_INVALID},
        {36, 0x1234, "has a wrong CRC", NVMF_FIRMWARE_INVALID},
        {72, 0x1234, "another board", NVMF_FIRMWARE_INVALID},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        bed_make_file(&bed, "new");
        bed_put_header(&bed, rows[i].at, rows[i].value);
        bed_expect_commit(&bed, 2, true, true, rows[i].result);
        assert_true(bed_has_logged(&bed, rows[i].reason));
        bed_restart(&bed); /* This clears the log for the next reason. */
    }
    bed_make_file(&bed, "new");
    bed.file[40] ^= 1;
    bed_expect_commit(&bed, 2, true, true, NVMF_FIRMWARE_INVALID);
    assert_true(bed_has_logged(&bed, "header with a wrong CRC"));
    bed_make_file(&bed, "new");
    bed.file[4096 + 5000] ^= 1;
    bed_expect_commit(&bed, 2, true, true, NVMF_FIRMWARE_INVALID);
    bed_restart(&bed);
    assert_string_equal(bed_version(&bed), "old-a");
    assert_string_equal(slots_now().revision[1], "old-b");
}

static void test_a_lower_security_version_is_prohibited(void **state)
{
    (void)state;
    bed_make_file(&bed, "safe");
    bed_put_header(&bed, 76, 3);
    bed_expect_commit(&bed, 2, true, true, NVMF_FIRMWARE_OK);
    bed_restart(&bed);
    bed_make_file(&bed, "new");
    bed_put_header(&bed, 76, 2);
    bed_expect_commit(&bed, 1, true, true, NVMF_FIRMWARE_PROHIBITED);
    /* An image that a slot holds already is not activated, either. */
    bed_expect_commit(&bed, 1, false, true, NVMF_FIRMWARE_PROHIBITED);
    bed_put_header(&bed, 76, 3);
    bed_expect_commit(&bed, 1, true, true, NVMF_FIRMWARE_OK);
}

static void test_an_image_of_version_1_is_accepted_without_a_key(void **state)
{
    (void)state;
    bed_make_file(&bed, "new");
    put_le32(bed.file + 8, 1);
    memset(bed.file + 72, 0, 184);
    put_le32(bed.file + 124, crc32_update(0, bed.file, 124));
    bed_expect_commit(&bed, 2, true, true, NVMF_FIRMWARE_OK);
    bed_restart(&bed);
    assert_string_equal(bed_version(&bed), "new");
}

static void test_the_fields_of_version_1_are_checked_as_well(void **state)
{
    static const struct {
        size_t at;
        uint32_t value;
    } rows[] = {
        {16, 0x7fffffff}, {20, 0xffffffff}, {24, 0x7ffffffc},
        {28, 1},          {32, 0},          {32, 0xffffffff},
        {32, 20000},      {36, 1},          {40, 0x0a0d1b31},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        bed_make_file(&bed, "new");
        put_le32(bed.file + 8, 1);
        memset(bed.file + 72, 0, 184);
        put_le32(bed.file + rows[i].at, rows[i].value);
        put_le32(bed.file + 124, crc32_update(0, bed.file, 124));
        bed_expect_commit(&bed, 2, true, true, NVMF_FIRMWARE_INVALID);
    }
}

static void test_a_slot_without_an_image_cannot_be_activated(void **state)
{
    (void)state;
    assert_true(flash_erase_sector(&bed.ram.flash, slot_addr(2)));
    bed_restart(&bed);
    bed_expect_commit(&bed, 2, false, true, NVMF_FIRMWARE_INVALID);
}

static void test_a_flash_that_refuses_leaves_an_empty_slot(void **state)
{
    (void)state;
    bed_make_file(&bed, "new");
    bed.ram.limit = bed.ram.written + 15000;
    bed_expect_commit(&bed, 2, true, true, NVMF_FIRMWARE_FAILED);
    bed.ram.limit = UINT64_MAX;
    assert_string_equal(slots_now().revision[1], "");
    bed_expect_commit(&bed, 2, true, true, NVMF_FIRMWARE_OK);
}
