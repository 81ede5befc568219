/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One slot must always hold a proven image.  These tests show which commits are
 * refused, which wait, and which images are on trial because of this.
 */
#include "update_bed.h"

#include <string.h>

#include "tests/test_fixture.h"

enum { SECURITY_AT = 76, VERSION_AT = 40 };

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

static void expect_running(const char *version)
{
    assert_string_equal(bed_version(&bed), version);
}

/* Update slot B and restart, so that its image is on trial. */
static void begin_trial(const char *version, uint32_t security)
{
    bed_make_file(&bed, version);
    bed_put_header(&bed, SECURITY_AT, security);
    bed_expect_commit(&bed, 2, true, true, NVMF_FIRMWARE_OK);
    bed_restart(&bed);
    expect_running(version);
    assert_true(updater_is_on_trial(&bed.updater));
}

/* The image crashes until the drive gives it up. */
static void crash_until_given_up(const char *version)
{
    for (unsigned int i = 1; i < SLOT_ATTEMPTS; i++) {
        bed_restart(&bed);
        expect_running(version);
    }
    bed_restart(&bed);
    expect_running("old-a");
}

static void test_a_refused_commit_does_not_end_the_trial(void **state)
{
    (void)state;
    begin_trial("bad", 0);
    bed_make_file(&bed, "new");
    bed.file[4096 + 77] ^= 1;
    bed_expect_commit(&bed, 2, true, true, NVMF_FIRMWARE_INVALID);
    assert_true(updater_is_on_trial(&bed.updater));
    crash_until_given_up("bad");
}

static void test_activating_the_image_on_trial_does_not_end_the_trial(
    void **state)
{
    (void)state;
    begin_trial("bad", 0);
    bed_expect_commit(&bed, 2, false, true, NVMF_FIRMWARE_OK);
    assert_true(updater_is_on_trial(&bed.updater));
    crash_until_given_up("bad");
}

/* A crash during each start's commit must not give the image more starts. */
static void test_commits_give_an_image_on_trial_no_more_starts(void **state)
{
    (void)state;
    begin_trial("bad", 0);
    for (unsigned int i = 1; i < SLOT_ATTEMPTS; i++) {
        bed_expect_commit(&bed, 2, false, true, NVMF_FIRMWARE_OK);
        bed_restart(&bed);
        expect_running("bad");
    }
    bed_expect_commit(&bed, 2, false, true, NVMF_FIRMWARE_OK);
    bed_restart(&bed);
    expect_running("old-a");
}

static void test_the_image_before_is_not_overwritten_during_a_trial(
    void **state)
{
    static struct bed_copy before, after;

    (void)state;
    begin_trial("bad", 0);
    bed_keep(&bed, &before);
    bed_make_file(&bed, "new");
    bed_commit(&bed, 0, true, true);
    for (uint64_t us = 0; us < UPDATE_TRIAL_US; us += 1000 * 1000) {
        (void)updater_step(&bed.updater, bed.now_us + us);
    }
    assert_false(bed.is_done);
    bed_keep(&bed, &after);
    assert_memory_equal(&before, &after, sizeof(before));
    crash_until_given_up("bad");
}

static void test_a_commit_waits_for_the_end_of_the_trial(void **state)
{
    (void)state;
    begin_trial("middle", 0);
    bed_make_file(&bed, "new");
    bed_expect_commit(&bed, 0, true, true, NVMF_FIRMWARE_OK);
    assert_int_equal(bed.done_slot, 1);
    bed_restart(&bed);
    expect_running("new");
}

static void test_a_commit_does_not_wait_for_a_trial_that_cannot_end(
    void **state)
{
    (void)state;
    begin_trial("middle", 0);
    bed_make_file(&bed, "new");
    bed.ram.limit = bed.ram.written;
    bed_expect_commit(&bed, 1, true, true, NVMF_FIRMWARE_FAILED);
    bed.ram.limit = UINT64_MAX;
    bed_expect_commit(&bed, 1, true, true, NVMF_FIRMWARE_OK);
}

static void test_a_replaced_image_on_trial_has_a_trial_of_its_own(void **state)
{
    (void)state;
    begin_trial("bad", 0);
    bed_make_file(&bed, "worse");
    bed_expect_commit(&bed, 2, true, true, NVMF_FIRMWARE_OK);
    bed_pass(&bed, UPDATE_TRIAL_US);
    bed_restart(&bed);
    expect_running("worse");
    crash_until_given_up("worse");
}

static void test_the_last_good_slot_is_kept_while_an_image_waits(void **state)
{
    (void)state;
    bed_make_file(&bed, "bad");
    bed_expect_commit(&bed, 2, true, true, NVMF_FIRMWARE_OK);
    bed_make_file(&bed, "worse");
    bed_expect_commit(&bed, 1, true, true, NVMF_FIRMWARE_READ_ONLY);
    assert_true(bed_has_logged(&bed, "has not passed its trial"));
    bed_expect_commit(&bed, 2, true, true, NVMF_FIRMWARE_OK);
}

static void test_the_last_good_slot_is_kept_after_an_image_was_stored(
    void **state)
{
    (void)state;
    bed_make_file(&bed, "bad");
    bed_expect_commit(&bed, 2, true, false, NVMF_FIRMWARE_OK);
    bed_restart(&bed);
    bed_make_file(&bed, "worse");
    bed_expect_commit(&bed, 1, true, true, NVMF_FIRMWARE_READ_ONLY);
}

static void test_the_last_good_slot_is_kept_after_a_trial_has_failed(
    void **state)
{
    (void)state;
    begin_trial("bad", 0);
    crash_until_given_up("bad");
    bed_make_file(&bed, "worse");
    bed_expect_commit(&bed, 1, true, true, NVMF_FIRMWARE_READ_ONLY);
    /* Activating the image again does not prove it either. */
    bed_expect_commit(&bed, 2, false, true, NVMF_FIRMWARE_OK);
    bed_expect_commit(&bed, 1, true, true, NVMF_FIRMWARE_READ_ONLY);
    bed_expect_commit(&bed, 1, false, true, NVMF_FIRMWARE_OK);
    bed_expect_commit(&bed, 1, true, true, NVMF_FIRMWARE_READ_ONLY);
    bed_restart(&bed);
    expect_running("old-a");
    bed_make_file(&bed, "new");
    bed_expect_commit(&bed, 0, true, true, NVMF_FIRMWARE_OK);
    assert_int_equal(bed.done_slot, 2);
}

static void test_an_image_that_was_given_up_gets_another_trial(void **state)
{
    (void)state;
    begin_trial("bad", 0);
    crash_until_given_up("bad");
    bed_expect_commit(&bed, 2, false, true, NVMF_FIRMWARE_OK);
    bed_restart(&bed);
    expect_running("bad");
    assert_true(updater_is_on_trial(&bed.updater));
    crash_until_given_up("bad");
    /* If it runs for long enough this time, it is as good as any other. */
    bed_expect_commit(&bed, 2, false, true, NVMF_FIRMWARE_OK);
    bed_restart(&bed);
    bed_pass(&bed, UPDATE_TRIAL_US);
    assert_int_equal(bed.updater.slots.record.failed, 0);
    bed_make_file(&bed, "new");
    bed_expect_commit(&bed, 1, true, true, NVMF_FIRMWARE_OK);
}

/* The previous image is damaged, so the image on trial is the only good one. */
static void test_an_image_without_an_alternative_stays_on_trial(void **state)
{
    (void)state;
    begin_trial("bad", 0);
    assert_true(flash_program(&bed.ram.flash, slot_addr(1) + 5000, "\0", 1));
    for (unsigned int i = 0; i < SLOT_ATTEMPTS + 2; i++) {
        bed_restart(&bed);
        expect_running("bad");
        assert_true(updater_is_on_trial(&bed.updater));
        assert_int_equal(updater_given_up(&bed.updater, NULL), 0);
    }
    bed_pass(&bed, UPDATE_TRIAL_US);
    bed_make_file(&bed, "new");
    bed_expect_commit(&bed, 1, true, true, NVMF_FIRMWARE_OK);
}

static void test_an_image_that_was_given_up_and_runs_again_is_on_trial(
    void **state)
{
    (void)state;
    begin_trial("bad", 0);
    crash_until_given_up("bad");
    assert_true(flash_program(&bed.ram.flash, slot_addr(1) + 5000, "\0", 1));
    bed_restart(&bed);
    expect_running("bad");
    assert_true(updater_is_on_trial(&bed.updater));
    assert_int_equal(bed.updater.slots.record.failed, 1);
}

/* The previous image is activated while another one is on trial.  It gets no
 * trial, and the other one stays unproven, even if the host activates that one
 * again. */
static void test_leaving_an_image_on_trial_does_not_prove_it(void **state)
{
    (void)state;
    begin_trial("bad", 0);
    bed_expect_commit(&bed, 1, false, true, NVMF_FIRMWARE_OK);
    bed_make_file(&bed, "worse");
    bed_expect_commit(&bed, 1, true, true, NVMF_FIRMWARE_READ_ONLY);
    bed_expect_commit(&bed, 2, false, true, NVMF_FIRMWARE_OK);
    assert_true(updater_is_on_trial(&bed.updater));
    bed_expect_commit(&bed, 1, false, true, NVMF_FIRMWARE_OK);
    for (unsigned int i = 0; i < SLOT_ATTEMPTS + 1; i++) {
        bed_restart(&bed);
        expect_running("old-a");
    }
    bed_expect_commit(&bed, 1, true, true, NVMF_FIRMWARE_READ_ONLY);
}

static void test_going_back_to_an_old_image_can_fail_too(void **state)
{
    (void)state;
    begin_trial("new", 0);
    bed_pass(&bed, UPDATE_TRIAL_US);
    bed_expect_commit(&bed, 1, false, true, NVMF_FIRMWARE_OK);
    for (unsigned int i = 0; i < SLOT_ATTEMPTS; i++) {
        bed_restart(&bed);
        expect_running("old-a");
    }
    bed_restart(&bed);
    expect_running("new");
}

static void test_a_start_that_cannot_be_counted_is_not_made(void **state)
{
    (void)state;
    bed_make_file(&bed, "bad");
    bed_expect_commit(&bed, 2, true, true, NVMF_FIRMWARE_OK);
    bed.ram.limit = bed.ram.written;
    for (unsigned int i = 0; i < 3; i++) {
        bed_restart(&bed);
        expect_running("old-a");
    }
}

/* ---- The running slot. */

static void test_a_commit_to_the_running_slot_waits_for_a_restart(void **state)
{
    (void)state;
    bed_make_file(&bed, "new");
    bed_expect_commit(&bed, 1, true, true, NVMF_FIRMWARE_OK);
    assert_int_equal(updater_next(&bed.updater), 1);
    bed_pass(&bed, UPDATE_TRIAL_US);
    bed_restart(&bed);
    expect_running("new");
    assert_true(updater_is_on_trial(&bed.updater));
    assert_int_equal(updater_next(&bed.updater), 0);
}

static void test_without_activation_the_other_slot_follows_the_running_one(
    void **state)
{
    (void)state;
    bed_make_file(&bed, "new");
    bed_expect_commit(&bed, 1, true, false, NVMF_FIRMWARE_OK);
    assert_int_equal(updater_next(&bed.updater), 2);
    bed_restart(&bed);
    expect_running("old-b");
}

static void test_storing_an_image_ends_the_activation_of_its_slot(void **state)
{
    (void)state;
    bed_make_file(&bed, "middle");
    bed_expect_commit(&bed, 2, true, true, NVMF_FIRMWARE_OK);
    bed_make_file(&bed, "new");
    bed_expect_commit(&bed, 2, true, false, NVMF_FIRMWARE_OK);
    assert_int_equal(updater_next(&bed.updater), 0);
    bed_restart(&bed);
    expect_running("old-a");
}

static void test_activating_the_running_image_needs_no_restart(void **state)
{
    (void)state;
    bed_expect_commit(&bed, 1, false, true, NVMF_FIRMWARE_OK);
    assert_int_equal(updater_next(&bed.updater), 0);
    assert_true(bed_has_logged(&bed, "which runs already"));
    assert_false(updater_is_on_trial(&bed.updater));
}

static void test_the_drive_chooses_a_slot_that_can_be_written(void **state)
{
    uint32_t sequence = bed.updater.slots.sequence;
    struct slot_record record = {
        .chosen = 2, .previous = 1, .is_a_read_only = true};

    (void)state;
    bed_make_file(&bed, "bad");
    bed_expect_commit(&bed, 1, true, true, NVMF_FIRMWARE_OK);
    bed_expect_commit(&bed, 0, true, true, NVMF_FIRMWARE_OK);
    assert_int_equal(bed.done_slot, 1);
    sequence = bed.updater.slots.sequence;
    assert_true(slot_record_write(&bed.ram.flash, &record, &sequence));
    bed_restart(&bed);
    bed_expect_commit(&bed, 0, true, true, NVMF_FIRMWARE_OK);
    assert_int_equal(bed.done_slot, 2);
}

/* Flip a bit of the newest record, in one ring or in both. */
static void damage_record(bool in_first, bool in_mirror, uint32_t at)
{
    uint32_t place = (bed.updater.slots.sequence - 1) %
                     FLASH_SLOT_RECORD_COPIES * FLASH_SECTOR_BYTES;
    uint8_t *flash = bed.ram.inverted;

    if (in_first) {
        flash[FLASH_SLOT_RECORD_ADDR + place + at] ^= 1;
    }
    if (in_mirror) {
        flash[FLASH_SLOT_RECORD_MIRROR + place + at] ^= 1;
    }
}

/* ---- Security versions. */

/* Image "safe" with security version 3 has replaced old-a for good. */
static void begin_safe(void)
{
    begin_trial("safe", 3);
    bed_pass(&bed, UPDATE_TRIAL_US);
    assert_false(updater_is_on_trial(&bed.updater));
}

static void test_a_power_cut_cannot_bring_a_weak_image_back(void **state)
{
    (void)state;
    begin_safe();
    bed_make_file(&bed, "new");
    bed_put_header(&bed, SECURITY_AT, 3);
    /* While slot B is written, slot A with its weak image would start. */
    bed_expect_commit(&bed, 2, true, true, NVMF_FIRMWARE_READ_ONLY);
    assert_true(bed_has_logged(&bed, "security version of the other slot"));
    bed_expect_commit(&bed, 1, true, true, NVMF_FIRMWARE_OK);
    bed_expect_commit(&bed, 1, true, true, NVMF_FIRMWARE_OK);
}

static void test_the_security_version_outlives_its_image(void **state)
{
    (void)state;
    begin_safe();
    assert_true(flash_program(&bed.ram.flash, slot_addr(2) + 5000, "\0", 1));
    bed_restart(&bed);
    expect_running("old-a");
    bed_make_file(&bed, "weak");
    bed_put_header(&bed, SECURITY_AT, 2);
    bed_expect_commit(&bed, 2, true, true, NVMF_FIRMWARE_PROHIBITED);
    bed_put_header(&bed, SECURITY_AT, 3);
    bed_expect_commit(&bed, 2, true, true, NVMF_FIRMWARE_OK);
}

static void test_a_trial_that_fails_does_not_raise_the_security_version(
    void **state)
{
    (void)state;
    begin_trial("bad", 3);
    crash_until_given_up("bad");
    bed_make_file(&bed, "new");
    bed_put_header(&bed, SECURITY_AT, 1);
    bed_expect_commit(&bed, 2, true, true, NVMF_FIRMWARE_OK);
}

/* It was activated before, and its slot holds it still. */
static void test_an_image_that_is_too_weak_now_is_not_activated_again(
    void **state)
{
    (void)state;
    begin_trial("weak", 1);
    bed_pass(&bed, UPDATE_TRIAL_US);
    bed_make_file(&bed, "strong");
    bed_put_header(&bed, SECURITY_AT, 3);
    bed_expect_commit(&bed, 1, true, true, NVMF_FIRMWARE_OK);
    bed_restart(&bed);
    expect_running("strong");
    /* Going back is possible until the trial has ended. */
    bed_pass(&bed, UPDATE_TRIAL_US);
    for (unsigned int i = 0; i < 2; i++) {
        bed_expect_commit(&bed, 2, false, true, NVMF_FIRMWARE_PROHIBITED);
        bed_restart(&bed);
        expect_running("strong");
        /* Nor if the record is lost, and made again, meanwhile. */
        damage_record(true, true, 30);
        bed_restart(&bed);
        expect_running("strong");
        bed_pass(&bed, UPDATE_TRIAL_US);
    }
}

/* ---- Wear, and hostile headers. */

static void write_record(const struct slot_record *record)
{
    uint32_t sequence = bed.updater.slots.sequence;

    assert_true(slot_record_write(&bed.ram.flash, record, &sequence));
    bed_restart(&bed);
}

static void test_the_number_of_updates_is_limited(void **state)
{
    const struct slot_record record = {
        .chosen = 1, .previous = 2, .stores = 1000};

    (void)state;
    write_record(&record);
    bed_make_file(&bed, "new");
    bed_commit(&bed, 2, true, true);
    assert_false(bed.was_taken);
    assert_false(updater_is_busy(&bed.updater));
    bed_expect_commit(&bed, 2, false, true, NVMF_FIRMWARE_OK);
    bed.power_on_hours = 1000;
    bed_expect_commit(&bed, 2, true, true, NVMF_FIRMWARE_OK);
    assert_int_equal(bed.updater.slots.record.stores, 1001);
}

/* One host stores as often as it may, and another one still can. */
static void test_a_host_leaves_updates_to_others(void **state)
{
    const struct slot_record record = {
        .chosen = 1, .previous = 2, .stores = 980};
    uint32_t stored = 0;

    (void)state;
    write_record(&record);
    bed_make_file(&bed, "new");
    bed.host = 1;
    for (;;) {
        bed_commit(&bed, 2, true, false);
        if (!bed.was_taken) {
            break;
        }
        bed_run(&bed);
        stored++;
    }
    assert_in_range(stored, 1, 19);
    bed.host = 2;
    bed_expect_commit(&bed, 2, true, false, NVMF_FIRMWARE_OK);
}

static void test_the_number_of_activations_is_limited(void **state)
{
    (void)state;
    bed_expect_commit(&bed, 2, false, true, NVMF_FIRMWARE_OK);
    bed.updater.slots.sequence = 16384;
    bed_commit(&bed, 1, false, true);
    assert_false(bed.was_taken);
    bed.power_on_hours = 1000;
    bed_expect_commit(&bed, 1, false, true, NVMF_FIRMWARE_OK);
}

/* What a commit costs its host is what it makes the flash take: the records of
 * the store, of the choice, of the boot ROM's attempt, and of the trial's end.
 */
static void test_a_commit_counts_as_often_as_it_writes(void **state)
{
    const struct write_shares *shares = updater_record_shares(&bed.updater);
    uint32_t sequence = bed.updater.slots.sequence;

    (void)state;
    bed.host = 1;
    bed_make_file(&bed, "new");
    bed_expect_commit(&bed, 2, true, true, NVMF_FIRMWARE_OK);
    assert_int_equal(bed.updater.slots.sequence, sequence + 2);
    assert_int_equal(shares->of[0].used, 4);
    bed_expect_commit(&bed, 2, false, true, NVMF_FIRMWARE_OK);
    assert_int_equal(bed.updater.slots.sequence, sequence + 2);
    assert_int_equal(shares->of[0].used, 4);
    bed_expect_commit(&bed, 1, false, true, NVMF_FIRMWARE_OK); /* is proven */
    assert_int_equal(bed.updater.slots.sequence, sequence + 3);
    assert_int_equal(shares->of[0].used, 5);
}

static void test_a_commit_that_changes_nothing_writes_nothing(void **state)
{
    uint64_t commands;

    (void)state;
    bed_expect_commit(&bed, 2, false, true, NVMF_FIRMWARE_OK);
    commands = bed.ram.commands;
    bed_expect_commit(&bed, 2, false, true, NVMF_FIRMWARE_OK);
    assert_int_equal(bed.ram.commands, commands);
}

static void test_a_version_with_control_characters_is_refused(void **state)
{
    static const uint32_t words[] = {
        0x6a325b1b,             /* ESC [ 2 j */
        0x0a0d3176, 0xff3176u,  /* CR LF; a byte beyond ASCII */
        0x00000000, 0x31003176, /* empty; a zero inside */
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        bed_make_file(&bed, "new");
        bed_put_header(&bed, VERSION_AT, words[i]);
        bed_expect_commit(&bed, 2, true, true, NVMF_FIRMWARE_INVALID);
        assert_true(bed_has_logged(&bed, "printable characters"));
    }
}

/* The boot ROM and the firmware print the version of what a slot holds. */
static void test_a_version_in_a_slot_cannot_control_the_console(void **state)
{
    static const char version[] = "\033[2jold";

    (void)state;
    bed_make_file(&bed, "new");
    memcpy(bed.file + VERSION_AT, version, sizeof(version));
    bed_put_header(&bed, SECURITY_AT, 0);
    assert_true(flash_erase_sector(&bed.ram.flash, slot_addr(2)));
    assert_true(flash_program(&bed.ram.flash, slot_addr(2), bed.file,
                              IMAGE_HEADER_LEN));
    bed_restart(&bed);
    assert_string_equal(bed.slots.slot[1].header.version, "?[2jold");
}

static void test_a_header_that_the_flash_garbles_is_no_update(void **state)
{
    (void)state;
    bed_make_file(&bed, "new");
    /* A bit of the header's reserved bytes that cannot be programmed. */
    bed.ram.stuck_addr = slot_addr(2) + 230;
    bed_expect_commit(&bed, 2, true, true, NVMF_FIRMWARE_FAILED);
    assert_int_equal(updater_next(&bed.updater), 0);
    bed_restart(&bed);
    expect_running("old-a");
}

static void test_an_image_that_the_flash_garbles_is_no_update(void **state)
{
    (void)state;
    bed_make_file(&bed, "new");
    for (uint32_t at = 1; at < BED_IMAGE_BYTES; at += BED_IMAGE_BYTES - 3) {
        bed.ram.stuck_addr = slot_addr(2) + FLASH_SLOT_IMAGE_OFFSET + at;
        bed_expect_commit(&bed, 2, true, true, NVMF_FIRMWARE_FAILED);
        assert_int_equal(updater_next(&bed.updater), 0);
    }
    bed.ram.stuck_addr = 0;
    bed_restart(&bed);
    expect_running("old-a");
    assert_int_equal(bed.slots.slot[1].verdict, SYSCTL_VERDICT_EMPTY);
}

/* While a slot is written, the record says so: it is unproven. */
static void test_a_slot_is_unproven_before_it_is_erased(void **state)
{
    uint64_t written = bed.ram.written;

    (void)state;
    bed_make_file(&bed, "new");
    /* The power fails in the first erasure of the slot. */
    bed.ram.limit = written + 3 * FLASH_SECTOR_BYTES;
    bed_expect_commit(&bed, 2, true, true, NVMF_FIRMWARE_FAILED);
    bed.ram.limit = UINT64_MAX;
    bed_restart(&bed);
    expect_running("old-a");
    assert_int_equal(bed.updater.slots.record.unproven, 2);
    assert_int_equal(bed.updater.slots.record.stores, 1);
}

/* A byte in the header of one record, and one in the body of the next, in
 * either ring. */
static void test_a_record_that_the_flash_garbles_stops_the_commit(void **state)
{
    static const uint32_t places[] = {
        FLASH_SLOT_RECORD_ADDR + FLASH_SECTOR_BYTES + 4,
        FLASH_SLOT_RECORD_ADDR + 2 * FLASH_SECTOR_BYTES + AREA_HEADER_LEN + 1,
        FLASH_SLOT_RECORD_MIRROR + 3 * FLASH_SECTOR_BYTES + 4,
        FLASH_SLOT_RECORD_MIRROR + 4 * FLASH_SECTOR_BYTES + AREA_HEADER_LEN + 1,
    };

    (void)state;
    bed_make_file(&bed, "new");
    bed_expect_commit(&bed, 2, true, false, NVMF_FIRMWARE_OK);
    for (size_t i = 0; i < ARRAY_LEN(places); i++) {
        bed.ram.stuck_addr = places[i];
        bed_expect_commit(&bed, 2, true, true, NVMF_FIRMWARE_FAILED);
    }
    bed_restart(&bed);
    expect_running("old-a");
    assert_string_equal(bed.slots.slot[1].header.version, "new");
    bed_expect_commit(&bed, 2, true, true, NVMF_FIRMWARE_OK);
}

/* ---- One damaged copy of the newest record. */

/* The image passes its trial at its last start. */
static void pass_at_last_start(void)
{
    begin_trial("safe", 3);
    for (unsigned int i = 1; i < SLOT_ATTEMPTS; i++) {
        bed_restart(&bed);
        expect_running("safe");
    }
    bed_pass(&bed, UPDATE_TRIAL_US);
    assert_false(updater_is_on_trial(&bed.updater));
}

static void test_a_damaged_record_does_not_bring_a_weak_image_back(void **state)
{
    (void)state;
    pass_at_last_start();
    for (uint32_t at = 0; at < AREA_HEADER_LEN + 24; at++) {
        if (at >= 12 && at < 20) {
            continue; /* reserved bytes of the header, which the CRC covers */
        }
        damage_record(at % 2 == 0, at % 2 != 0, at);
        bed_restart(&bed);
        expect_running("safe");
        assert_false(updater_is_on_trial(&bed.updater));
        assert_int_equal(bed.updater.slots.record.security, 3);
        log_flush(&bed.log);
        assert_true(bed_has_logged(&bed, "damaged, and was written again"));
        bed.text_len = 0;
    }
}

static void test_a_damaged_record_does_not_start_an_image_that_was_only_stored(
    void **state)
{
    (void)state;
    for (unsigned int i = 0; i < 2; i++) {
        bed_make_file(&bed, "new");
        bed_expect_commit(&bed, 2, true, false, NVMF_FIRMWARE_OK);
        damage_record(i == 0, i != 0, 3);
        bed_restart(&bed);
        expect_running("old-a");
        assert_int_equal(bed.updater.slots.record.unproven, 2);
    }
}

/* The power fails at each byte while a damaged record is written again. */
static void test_a_repair_of_the_record_may_be_cut(void **state)
{
    static struct bed_copy kept;

    (void)state;
    pass_at_last_start();
    damage_record(true, false, 30);
    bed_keep(&bed, &kept);
    for (uint64_t limit = 0; limit < 2 * FLASH_SECTOR_BYTES + 200;
         limit += limit % FLASH_SECTOR_BYTES > 200 ? 61 : 1) {
        bed_restore(&bed, &kept);
        bed.ram.limit = bed.ram.written + limit;
        bed_restart(&bed);
        bed.ram.limit = UINT64_MAX;
        bed_restart(&bed);
        expect_running("safe");
        assert_false(updater_is_on_trial(&bed.updater));
    }
}

static void test_a_repair_that_the_flash_refuses_is_reported(void **state)
{
    (void)state;
    pass_at_last_start();
    damage_record(true, false, 30);
    bed.ram.limit = bed.ram.written;
    bed_restart(&bed);
    bed.ram.limit = UINT64_MAX;
    expect_running("safe");
    assert_false(updater_is_on_trial(&bed.updater));
    log_flush(&bed.log);
    assert_true(bed_has_logged(&bed, "writing a copy of the state of the slots "
                                     "in flash again failed; the state in "
                                     "force is complete"));
}

/* ---- Two damaged copies of the newest record. */

static void lose_record(void)
{
    damage_record(true, true, 30);
    bed.text_len = 0;
    bed_restart(&bed);
    log_flush(&bed.log);
    assert_true(bed.slots.has_lost);
    assert_true(
        bed_has_logged(&bed, "state of the slots in flash was damaged"));
}

static void expect_floor_of_3(void)
{
    bed_make_file(&bed, "weak");
    bed_put_header(&bed, SECURITY_AT, 2);
    bed_expect_commit(&bed, 0, true, true, NVMF_FIRMWARE_PROHIBITED);
    bed_put_header(&bed, SECURITY_AT, 3);
    bed_expect_commit(&bed, 0, true, true, NVMF_FIRMWARE_OK);
}

/* The record before says that its image has had all its starts. */
static void test_a_lost_record_does_not_bring_a_weak_image_back(void **state)
{
    (void)state;
    pass_at_last_start();
    bed.is_unplanned = true;
    lose_record();
    expect_running("safe");
    assert_true(updater_is_on_trial(&bed.updater));
    bed_pass(&bed, UPDATE_TRIAL_US);
    bed.text_len = 0;
    bed.is_unplanned = false;
    bed_restart(&bed);
    log_flush(&bed.log);
    assert_false(bed_has_logged(&bed, "was damaged"));
    expect_running("safe");
    assert_false(updater_is_on_trial(&bed.updater));
    expect_floor_of_3();
}

static void test_a_lost_record_leaves_the_floor_when_its_image_fails(
    void **state)
{
    (void)state;
    pass_at_last_start();
    lose_record();
    crash_until_given_up("safe");
    expect_floor_of_3();
}

/* No record is left, and one of the two images is damaged. */
static void test_a_lost_record_keeps_the_only_good_image(void **state)
{
    (void)state;
    bed_make_file(&bed, "safe");
    bed_put_header(&bed, SECURITY_AT, 3);
    bed_expect_commit(&bed, 2, true, false, NVMF_FIRMWARE_OK);
    assert_true(flash_program(&bed.ram.flash, slot_addr(1), "\0\0\0", 3));
    lose_record();
    expect_running("safe");
    assert_false(updater_is_on_trial(&bed.updater));
    for (unsigned int i = 0; i < 2; i++) {
        uint32_t sequence = bed.updater.slots.sequence;

        bed_restart(&bed);
        log_flush(&bed.log);
        assert_false(bed.slots.has_lost);
        assert_false(bed_has_logged(&bed, "was damaged"));
        expect_running("safe");
        assert_int_equal(bed.updater.slots.record.security, 3);
        assert_int_equal(bed.updater.slots.sequence, sequence);
    }
}

/* The next start reports a loss once more if the flash does not take the record
 * that says it was reported. */
static void test_a_lost_record_is_reported_until_this_is_in_flash(void **state)
{
    static struct bed_copy kept;

    (void)state;
    begin_safe();
    assert_true(flash_program(&bed.ram.flash, slot_addr(1), "\0\0\0", 3));
    damage_record(true, true, 30);
    bed_keep(&bed, &kept);
    for (uint64_t limit = 0; limit < 4 * FLASH_SECTOR_BYTES + 300;
         limit += 61) {
        bed_restore(&bed, &kept);
        bed.ram.limit = bed.ram.written + limit;
        bed_restart(&bed);
        bed.ram.limit = UINT64_MAX;
        expect_running("safe");
        log_flush(&bed.log);
        assert_true(bed_has_logged(&bed, "was damaged"));
        for (unsigned int i = 0; i < 2; i++) {
            bed_restart(&bed);
            expect_running("safe");
            assert_int_equal(update_slots_security(&bed.updater.slots), 3);
        }
        log_flush(&bed.log);
        assert_false(bed_has_logged(&bed, "was damaged"));
    }
}

/* The flash takes no record at the start. */
static void test_a_lost_record_that_is_not_replaced_leaves_the_floor(
    void **state)
{
    (void)state;
    pass_at_last_start();
    bed.ram.limit = bed.ram.written;
    lose_record();
    bed.ram.limit = UINT64_MAX;
    expect_running("old-a");
    expect_floor_of_3();
    assert_int_equal(bed.done_slot, 2);
}

/* The power fails at each byte while a lost record is replaced. */
static void test_the_replacement_of_a_lost_record_may_be_cut(void **state)
{
    static struct bed_copy kept;

    (void)state;
    pass_at_last_start();
    damage_record(true, true, 30);
    bed_keep(&bed, &kept);
    for (uint64_t limit = 0; limit < 2 * FLASH_SECTOR_BYTES + 200;
         limit += limit % FLASH_SECTOR_BYTES > 200 ? 61 : 1) {
        bed_restore(&bed, &kept);
        bed.ram.limit = bed.ram.written + limit;
        bed_restart(&bed);
        bed.ram.limit = UINT64_MAX;
        bed_restart(&bed);
        expect_running("safe");
        assert_int_equal(update_slots_security(&bed.updater.slots), 3);
    }
}

/* ---- One ring. */

/* Older firmware has written the record into one ring. */
static void test_a_kept_drive_gets_two_copies_of_the_record(void **state)
{
    static struct bed_copy kept;

    (void)state;
    pass_at_last_start();
    bed_keep(&bed, &kept);
    memset(kept.mirror, 0, sizeof(kept.mirror)); /* inverted: erased */
    bed_restore(&bed, &kept);
    bed_restart(&bed);
    expect_running("safe");
    for (unsigned int i = 0; i < 2; i++) {
        damage_record(i == 0, i != 0, 30);
        bed_restart(&bed);
        expect_running("safe");
        assert_false(updater_is_on_trial(&bed.updater));
    }
}
