/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Hosts commit good and bad images in any order, and the power fails at any
 * byte of anything that is written.  When hosts and power then leave the drive
 * alone, it must start a good image in the end, and keep running it.
 *
 * A good image never crashes.  A bad one crashes before its trial is over, but
 * executes commits until then.
 */
#include "update_bed.h"

#include <stdlib.h>
#include <string.h>

#include "lib/random.h"
#include "tests/test_fixture.h"

enum {
    ROUNDS = 3000,
    CRASH_US = 5 * 1000 * 1000, /* how long a bad image runs */
    CUT_BYTES = 40000,          /* more than a commit writes */
    RECORD_BYTES = 4096 + 96,
};

TEST_FIXTURE(begin_test, end_test)

static struct update_bed bed;
static struct bed_copy kept;
static uint64_t seed;
static uint64_t crash_us; /* when the running image crashes, if it is bad */
static unsigned int outcomes[NVMF_FIRMWARE_RESULTS];
static unsigned int cuts, waits, back;

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

static uint64_t read_setting(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);

    return text != NULL ? strtoull(text, NULL, 10) : otherwise;
}

static uint32_t random_below(uint32_t limit)
{
    return (uint32_t)(random_next(&seed) % limit);
}

static bool runs_good_image(void)
{
    return strncmp(bed_version(&bed), "bad", 3) != 0;
}

static void restart_drive(void)
{
    bed_restart(&bed);
    crash_us = bed.now_us + CRASH_US;
}

/* Start the drive, cutting the power again in the boot ROM now and then. */
static void start_drive(void)
{
    if (random_below(4) == 0) {
        bed.ram.limit = bed.ram.written + random_below(RECORD_BYTES);
        bed_restart(&bed);
        bed.ram.limit = UINT64_MAX;
    }
    restart_drive();
    assert_int_not_equal(bed.running, 0);
    back += bed.slots.gave_up;
}

/* Let the drive run without commits and power cuts. */
static void expect_good_image(void)
{
    char version[IMAGE_VERSION_LEN + 1];

    bed_keep(&bed, &kept);
    for (unsigned int i = 0;; i++) {
        bed_restart(&bed);
        assert_int_not_equal(bed.running, 0);
        if (runs_good_image()) {
            break;
        }
        assert_true(i <= SLOT_ATTEMPTS);
        bed_pass(&bed, CRASH_US);
    }
    bed_pass(&bed, UPDATE_TRIAL_US);
    strcpy(version, bed_version(&bed));
    for (unsigned int i = 0; i <= SLOT_ATTEMPTS; i++) {
        bed_restart(&bed);
        assert_string_equal(bed_version(&bed), version);
    }
    bed_restore(&bed, &kept);
}

/* Let a commit run until it ends, the image crashes or the power fails. */
static void run_commit(void)
{
    bool is_good = runs_good_image();
    uint64_t end_us = is_good ? UINT64_MAX : crash_us;

    for (int i = 0; !bed.is_done && !flash_ram_is_off(&bed.ram); i++) {
        uint64_t next_us = updater_step(&bed.updater, bed.now_us);

        assert_true(i < BED_STEPS_MAX);
        waits += next_us != UINT64_MAX && next_us > bed.now_us + CRASH_US;
        bed.now_us += 100;
        if (!bed.is_done && next_us != UINT64_MAX) {
            bed.now_us = MAX(bed.now_us, next_us);
        }
        if (bed.now_us >= end_us) {
            return;
        }
    }
    if (bed.is_done) {
        outcomes[bed.result]++;
    }
}

static uint32_t any_cut(void)
{
    switch (random_below(3)) {
    case 0: /* while a record is written */
        return random_below(2 * RECORD_BYTES);
    case 1: /* at the end of a commit */
        return 4 * 4096 + 9000 + random_below(3 * RECORD_BYTES);
    default:
        return random_below(CUT_BYTES);
    }
}

/* @return whether the drive is to be started again */
static bool commit_any_image(void)
{
    bool is_cut = random_below(2) == 0;
    uint8_t slot = (uint8_t)random_below(3);
    bool stores = slot == 0 || random_below(3) != 0;
    char version[IMAGE_VERSION_LEN + 1];
    bool has_crashed;

    strcpy(version, random_below(2) == 0 ? "bad-x" : "good-x");
    version[strlen(version) - 1] = (char)('a' + random_below(26));
    bed_make_file(&bed, version);
    if (random_below(8) == 0) {
        bed.file[random_below(BED_FILE_BYTES)] ^= 1;
    }
    if (is_cut) {
        bed.ram.limit = bed.ram.written + any_cut();
    }
    bed_commit(&bed, slot, stores, !stores || random_below(3) != 0);
    assert_true(bed.was_taken);
    run_commit();
    cuts += flash_ram_is_off(&bed.ram);
    has_crashed = !bed.is_done || flash_ram_is_off(&bed.ram);
    bed.ram.limit = UINT64_MAX;
    return has_crashed;
}

static void test_a_good_image_runs_in_the_end(void **state)
{
    uint64_t rounds = read_setting("UPDATE_ROUNDS", ROUNDS);

    (void)state;
    seed = read_setting("UPDATE_SEED", 1);
    bed.power_on_hours = 1000 * 1000; /* so that any number is possible */
    for (uint64_t i = 0; i < rounds; i++) {
        bool is_off = commit_any_image();

        if (!is_off && random_below(3) == 0) {
            is_off = !runs_good_image();
            bed_pass(&bed, is_off ? crash_us - bed.now_us : UPDATE_TRIAL_US);
        }
        if (is_off || random_below(3) == 0) {
            start_drive();
            /* The drive has just started from flash, so check that the flash
             * leads to a good image. */
            expect_good_image();
            restart_drive();
            while (random_below(3) != 0 && !runs_good_image()) {
                start_drive();
            }
        }
        log_flush(&bed.log);
        bed.text_len = 0;
    }
    print_message("%u cuts, %u waits, %u images given up; %u commits done, %u "
                  "invalid, %u refused\n",
                  cuts, waits, back, outcomes[NVMF_FIRMWARE_OK],
                  outcomes[NVMF_FIRMWARE_INVALID],
                  outcomes[NVMF_FIRMWARE_READ_ONLY]);
    assert_true(cuts > 0 && waits > 0 && back > 0);
    assert_true(outcomes[NVMF_FIRMWARE_OK] > rounds / 16);
    assert_true(outcomes[NVMF_FIRMWARE_READ_ONLY] > 0);
}
