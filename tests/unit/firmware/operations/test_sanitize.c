/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The sanitize operation on a medium with a volatile cache: what is on the
 * medium at the end, also when the power was cut after any step.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "firmware/hal/time.h"
#include "firmware/operations/sanitize.h"
#include "tests/test_fixture.h"

#include <stdlib.h>
#include <string.h>

enum {
    MEDIUM_MIB = 3,
    /* The last write is shorter than the others. */
    MEDIUM_BYTES = MEDIUM_MIB * 1024 * 1024 - 512 * 5,
    OLD_DATA = 0xee,
    STEPS_MAX = 1000,
};

struct bed {
    struct sanitize sanitize;
    struct log log;
    uint8_t buffer[SANITIZE_BUFFER_BYTES];
    uint64_t now_us;
    uint8_t cached[MEDIUM_BYTES]; /* what a read would return */
    uint8_t medium[MEDIUM_BYTES]; /* what a power cut leaves */

    bool has_op;
    struct media_io op;
    uint32_t first_word; /* of what the last write has written */
    unsigned int writes_to_end;
    uint32_t words[32]; /* first word of each pass that was flushed */
    unsigned int passes;
    bool was_deallocated;
    enum media_status status;
    uint64_t bad_block;

    uint8_t record[SANITIZE_RECORD_LEN];
    uint32_t writes;
    enum operation_record damage;
    bool is_flash_broken;
    bool is_short; /* the medium: a namespace extends beyond its end */
    uint64_t hours;
    unsigned int ended;
    bool was_ok;
};

static struct bed *bed;

uint64_t hal_now_us(void)
{
    return 0;
}

static bool submit_io(void *ctx, const struct media_io *io)
{
    uint32_t len = 0;

    assert_ptr_equal(ctx, bed);
    /* It is nobody's command. */
    assert_int_equal(io->number, MEDIA_NO_NUMBER);
    assert_false(bed->has_op);
    assert_true(bed->writes > 0); /* the operation is in flash already */
    bed->op = *io;
    bed->has_op = true;
    for (uint8_t i = 0; i < io->piece_count; i++) {
        len += io->pieces[i].len_bytes;
        memcpy(&bed->first_word, io->pieces[0].ptr, 4);
    }
    if (io->op == MEDIA_WRITE) {
        /* The medium may read the pieces until the operation has ended. */
        assert_in_range((uintptr_t)io->pieces, (uintptr_t)&bed->sanitize,
                        (uintptr_t)(&bed->sanitize + 1) - sizeof(*io->pieces));
        assert_int_equal(len, io->count_blocks * 512);
    }
    return true;
}

static void finish_io(void)
{
    const struct media_io *io = &bed->op;
    size_t at = io->first_lba * 512;
    size_t len = (size_t)io->count_blocks * 512;
    enum media_status status = MEDIA_OK;

    bed->has_op = false;
    assert_true(at + len <= MEDIUM_BYTES);
    if (bed->bad_block >= io->first_lba &&
        bed->bad_block < io->first_lba + io->count_blocks) {
        status = MEDIA_WRITE_ERROR;
    } else if (io->op == MEDIA_WRITE) {
        for (size_t i = 0; i < len; i += SANITIZE_BUFFER_BYTES) {
            memcpy(bed->cached + at + i, bed->buffer,
                   MIN(len - i, (size_t)SANITIZE_BUFFER_BYTES));
        }
        bed->words[bed->passes] = bed->first_word;
    } else if (io->op == MEDIA_FLUSH) {
        memcpy(bed->medium, bed->cached, MEDIUM_BYTES);
        bed->passes++;
    } else {
        memset(bed->cached + at, 0, len);
        bed->was_deallocated |= io->op == MEDIA_DEALLOCATE;
    }
    media_end(io->owner, status);
}

static bool save_record(void *ctx, const uint8_t *record, size_t len)
{
    assert_ptr_equal(ctx, bed);
    assert_int_equal(len, SANITIZE_RECORD_LEN);
    if (bed->is_flash_broken) {
        return false;
    }
    memcpy(bed->record, record, len);
    bed->writes++;
    return true;
}

static uint64_t read_hours(void *ctx)
{
    (void)ctx;
    return bed->hours;
}

static void note_end(void *ctx, bool is_ok)
{
    assert_ptr_equal(ctx, bed);
    bed->ended++;
    bed->was_ok = is_ok;
}

static size_t drop_text(void *ctx, const char *text, size_t len)
{
    (void)ctx;
    (void)text;
    return len;
}

/* Start, as after a power cut: what was not flushed is lost. */
static void start_drive(void)
{
    const struct sanitize_config config = {
        .log = &bed->log,
        .medium_blocks = MEDIUM_BYTES / (bed->is_short ? 1024u : 512u),
        .is_short = bed->is_short,
        .buffer = bed->buffer,
        .store =
            {
                .state = bed->damage != OPERATION_RECORD_NONE ? bed->damage
                         : bed->writes != 0 ? OPERATION_RECORD_OK
                                            : OPERATION_RECORD_NONE,
                .record = bed->record,
                .len = SANITIZE_RECORD_LEN,
                .writes = bed->writes,
                .save = save_record,
                .ctx = bed,
            },
        .submit = submit_io,
        .submit_ctx = bed,
        .power_on_hours = read_hours,
        .ended = note_end,
        .ctx = bed,
    };

    memcpy(bed->cached, bed->medium, MEDIUM_BYTES);
    memset(bed->buffer, OLD_DATA, sizeof(bed->buffer));
    bed->has_op = false;
    sanitize_init(&bed->sanitize, &config);
}

static void reset_bed(void)
{
    static const struct log_sink sink = {.write = drop_text};

    memset(bed, 0, sizeof(*bed));
    log_init(&bed->log, sink);
    bed->bad_block = UINT64_MAX;
    memset(bed->medium, OLD_DATA, MEDIUM_BYTES);
    start_drive();
}

static int setup(void **state)
{
    (void)state;
    bed = malloc(sizeof(*bed));
    assert_non_null(bed);
    reset_bed();
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    free(bed);
    return 0;
}

static struct nvmf_sanitize_now now_state(void)
{
    struct nvmf_sanitize_now now;

    sanitize_read(&bed->sanitize, &now);
    return now;
}

static void run_step(void)
{
    uint64_t next_us;

    if (bed->has_op) {
        finish_io();
    }
    next_us = sanitize_step(&bed->sanitize, bed->now_us);
    bed->now_us = MIN(next_us, bed->now_us + 1000);
}

static void run_to_end(void)
{
    for (unsigned int i = 0; now_state().outcome == NVMF_SANITIZE_IN_PROGRESS;
         i++) {
        assert_true(i < STEPS_MAX);
        run_step();
    }
}

static void expect_medium(uint32_t word)
{
    for (size_t i = 0; i < MEDIUM_BYTES; i += 4) {
        uint32_t got;

        memcpy(&got, bed->medium + i, 4);
        assert_int_equal(got, word);
    }
}

static const struct nvmf_sanitize block_erase = {
    .action = NVMF_SANITIZE_BLOCK_ERASE, .passes = 16, .cdw10 = 2};
static const struct nvmf_sanitize block_keep = {.action =
                                                    NVMF_SANITIZE_BLOCK_ERASE,
                                                .passes = 16,
                                                .keeps_blocks = true,
                                                .cdw10 = 0x202};
static const struct nvmf_sanitize overwrite = {.action =
                                                   NVMF_SANITIZE_OVERWRITE,
                                               .passes = 2,
                                               .pattern = 0x12345678,
                                               .cdw10 = 0x23};
static const struct nvmf_sanitize overwrite_keep = {.action =
                                                        NVMF_SANITIZE_OVERWRITE,
                                                    .passes = 3,
                                                    .inverts = true,
                                                    .keeps_blocks = true,
                                                    .pattern = 0xa5a50ff0,
                                                    .cdw10 = 0x333};

static void start_job(const struct nvmf_sanitize *job)
{
    assert_int_equal(sanitize_start(&bed->sanitize, job), NVMF_VOLUME_OK);
    assert_int_equal(now_state().outcome, NVMF_SANITIZE_IN_PROGRESS);
}

static void test_a_block_erase_leaves_zeroes_on_the_medium(void **state)
{
    (void)state;
    start_job(&block_erase);
    run_to_end();
    expect_medium(0);
    assert_true(bed->was_deallocated);
    assert_true(bed->was_ok);
    assert_int_equal(now_state().outcome, NVMF_SANITIZE_DONE);
    assert_true(now_state().is_erased);
    assert_int_equal(now_state().job.cdw10, 2);
}

static void test_a_block_erase_that_keeps_blocks_deallocates_none(void **state)
{
    (void)state;
    start_job(&block_keep);
    run_to_end();
    expect_medium(0);
    assert_false(bed->was_deallocated);
}

static void test_an_overwrite_ends_with_a_deallocation(void **state)
{
    (void)state;
    start_job(&overwrite);
    run_to_end();
    expect_medium(0);
    assert_true(bed->was_deallocated);
    assert_int_equal(bed->passes, 3);
    assert_int_equal(bed->words[0], 0x12345678);
    assert_int_equal(bed->words[1], 0x12345678);
    assert_int_equal(now_state().passes, 2);
}

static void test_an_overwrite_that_inverts_ends_with_the_pattern(void **state)
{
    struct nvmf_sanitize even = overwrite_keep;

    (void)state;
    start_job(&overwrite_keep);
    run_to_end();
    expect_medium(0xa5a50ff0);
    assert_int_equal(bed->passes, 3);
    assert_int_equal(bed->words[0], 0xa5a50ff0);
    assert_int_equal(bed->words[1], ~0xa5a50ff0u);
    assert_int_equal(bed->words[2], 0xa5a50ff0);
    reset_bed();
    even.passes = 2;
    start_job(&even);
    run_to_end();
    expect_medium(0xa5a50ff0);
    assert_int_equal(bed->words[0], ~0xa5a50ff0u);
    assert_int_equal(bed->words[1], 0xa5a50ff0);
}

/* Cut the power after `steps` steps, and again after as many, then let the
 * operation end. */
static bool cut_after(const struct nvmf_sanitize *job, unsigned int steps,
                      uint32_t word)
{
    bool was_running;

    reset_bed();
    start_job(job);
    for (unsigned int i = 0; i < steps; i++) {
        run_step();
    }
    was_running = now_state().outcome == NVMF_SANITIZE_IN_PROGRESS;
    start_drive();
    for (unsigned int i = 0; i < steps; i++) {
        run_step();
    }
    start_drive();
    run_to_end();
    expect_medium(word);
    assert_int_equal(now_state().outcome, NVMF_SANITIZE_DONE);
    assert_int_equal(now_state().job.cdw10, job->cdw10);
    return was_running;
}

static void test_a_power_cut_after_any_step_only_delays_the_end(void **state)
{
    unsigned int steps;

    (void)state;
    for (steps = 0; cut_after(&block_erase, steps, 0); steps++) {
    }
    for (steps = 0; cut_after(&overwrite, steps, 0); steps++) {
    }
    assert_true(steps > 6);
    for (steps = 0; cut_after(&overwrite_keep, steps, 0xa5a50ff0); steps++) {
    }
    for (steps = 0; cut_after(&block_keep, steps, 0); steps++) {
    }
}

static void test_a_pass_that_was_flushed_is_not_repeated(void **state)
{
    (void)state;
    start_job(&overwrite_keep);
    while (now_state().passes < 2) {
        run_step();
    }
    bed->passes = 0;
    start_drive();
    assert_int_equal(now_state().passes, 2);
    run_to_end();
    assert_int_equal(bed->passes, 1);
}

static void test_progress_never_goes_back_and_ends_below_the_top(void **state)
{
    uint16_t last = 0;

    (void)state;
    start_job(&overwrite_keep);
    while (now_state().outcome == NVMF_SANITIZE_IN_PROGRESS) {
        assert_true(now_state().progress >= last);
        last = now_state().progress;
        run_step();
    }
    assert_true(last > 60000);
}

static void test_a_failure_blocks_until_it_is_left(void **state)
{
    (void)state;
    bed->bad_block = 3000;
    start_job(&overwrite);
    run_to_end();
    assert_int_equal(bed->ended, 1);
    assert_false(bed->was_ok);
    assert_int_equal(now_state().outcome, NVMF_SANITIZE_FAILED);
    assert_true(now_state().is_blocking);
    assert_false(now_state().is_erased);
    start_drive(); /* a power cut does not leave it */
    assert_true(now_state().is_blocking);
    assert_true(sanitize_exit_failure(&bed->sanitize));
    assert_false(now_state().is_blocking);
    assert_int_equal(now_state().outcome, NVMF_SANITIZE_FAILED);
    start_drive();
    assert_false(now_state().is_blocking);
}

static void test_a_write_ends_the_claim_that_all_is_erased(void **state)
{
    (void)state;
    start_job(&block_erase);
    run_to_end();
    start_drive();
    assert_true(now_state().is_erased);
    sanitize_note_write(&bed->sanitize);
    assert_false(now_state().is_erased);
    start_drive();
    assert_false(now_state().is_erased);
    assert_int_equal(now_state().outcome, NVMF_SANITIZE_DONE);
}

static void test_nothing_is_erased_that_is_not_in_flash(void **state)
{
    (void)state;
    bed->is_flash_broken = true;
    assert_int_equal(sanitize_start(&bed->sanitize, &block_erase),
                     NVMF_VOLUME_FAILED);
    assert_int_equal(now_state().outcome, NVMF_SANITIZE_NEVER);
    run_step();
    expect_medium(0xeeeeeeee);
}

static void test_a_host_cannot_wear_the_flash_out(void **state)
{
    (void)state;
    bed->writes = OPERATION_SAVES_FREE;
    sanitize_record_emit(&bed->sanitize.state, bed->record);
    bed->record[2] = NVMF_SANITIZE_BLOCK_ERASE;
    bed->record[3] = 1;
    start_drive();
    assert_int_equal(sanitize_start(&bed->sanitize, &block_erase),
                     NVMF_VOLUME_TOO_OFTEN);
    bed->hours = 1;
    start_job(&block_erase);
}

static void test_damaged_records_make_no_claim(void **state)
{
    struct sanitize_state parsed;

    (void)state;
    start_job(&block_erase);
    run_to_end();
    for (size_t len = 0; len < SANITIZE_RECORD_LEN; len++) {
        assert_false(sanitize_record_parse(&parsed, bed->record, len));
    }
    bed->record[1] ^= 0xff;
    bed->record[0] = 0xff;
    start_drive();
    assert_true(now_state().is_blocking);
}

/* The lost record may have said that an operation has begun. */
static void test_a_lost_record_counts_as_an_operation_that_has_failed(
    void **state)
{
    static const enum operation_record losses[] = {OPERATION_RECORD_OLDER,
                                                   OPERATION_RECORD_DAMAGED};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(losses); i++) {
        bed->damage = OPERATION_RECORD_OK;
        start_drive();
        start_job(&block_erase);
        run_to_end();
        assert_true(now_state().is_erased);
        bed->damage = losses[i];
        for (unsigned int starts = 0; starts < 2; starts++) {
            start_drive();
            assert_int_equal(now_state().outcome, NVMF_SANITIZE_FAILED);
            assert_true(now_state().is_blocking);
            assert_true(now_state().job.allows_exit);
            assert_false(now_state().is_erased);
        }
        /* Once it is ended, the new record says so. */
        assert_true(sanitize_exit_failure(&bed->sanitize));
        bed->damage = OPERATION_RECORD_OK;
        start_drive();
        assert_false(now_state().is_blocking);
        assert_false(now_state().is_erased);
    }
}

static void test_an_older_record_of_an_operation_goes_on(void **state)
{
    (void)state;
    start_job(&block_erase);
    bed->damage = OPERATION_RECORD_OLDER;
    start_drive();
    assert_int_equal(now_state().outcome, NVMF_SANITIZE_IN_PROGRESS);
    run_to_end();
    assert_int_equal(now_state().outcome, NVMF_SANITIZE_DONE);
}

/* The rest of the operation's data is there again when the medium is. */
static void test_an_operation_does_not_end_while_the_medium_is_too_short(
    void **state)
{
    (void)state;
    start_job(&block_erase);
    run_step();
    bed->is_short = true;
    for (unsigned int starts = 0; starts < 2; starts++) {
        start_drive();
        run_to_end();
        assert_int_equal(now_state().outcome, NVMF_SANITIZE_FAILED);
        assert_true(now_state().is_blocking);
        assert_int_equal(bed->ended, 0);
    }
    bed->is_short = false;
    start_drive();
    run_to_end();
    assert_int_equal(now_state().outcome, NVMF_SANITIZE_DONE);
    expect_medium(0);
}

static void test_no_operation_starts_while_the_medium_is_too_short(void **state)
{
    (void)state;
    bed->is_short = true;
    start_drive();
    assert_int_equal(sanitize_start(&bed->sanitize, &block_erase),
                     NVMF_VOLUME_FAILED);
    assert_int_equal(now_state().outcome, NVMF_SANITIZE_NEVER);
    assert_int_equal(bed->writes, 0);
    assert_false(bed->has_op);
}

/* A failure that its host may leave can be left, too, and stays so. */
static void test_an_operation_on_a_short_medium_can_be_left(void **state)
{
    struct nvmf_sanitize job = block_erase;

    (void)state;
    job.allows_exit = true;
    start_job(&job);
    bed->is_short = true;
    start_drive();
    assert_true(sanitize_exit_failure(&bed->sanitize));
    bed->is_short = false;
    start_drive();
    assert_int_equal(now_state().outcome, NVMF_SANITIZE_FAILED);
    assert_false(now_state().is_blocking);
}

TEST_FIXTURE(setup, teardown)
