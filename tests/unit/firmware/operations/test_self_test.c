/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The self-test on a medium with blocks that cannot be read: what it reads, how
 * fast, what it reports, and what a power cut leaves.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "firmware/hal/time.h"
#include "firmware/operations/self_test.h"
#include "tests/test_fixture.h"

#include <stdlib.h>
#include <string.h>

enum {
    MEDIUM_MIB = 12,
    BLOCKS_MIB = 2048, /* of 512 bytes */
    CHUNKS_MIB = 8,
    NO_BLOCK = 0xffffffff,
    STEPS_MAX = 100000,
};

struct bed {
    struct volume volume;
    struct self_test test;
    struct log log;
    struct identity identity;
    uint8_t buffer[SELF_TEST_BUFFER_BYTES];
    uint64_t now_us;

    bool has_op;
    struct media_io op;
    uint32_t bad;          /* block of 512 bytes that cannot be read */
    unsigned int flaky;    /* so many reads of it fail, then it can be read */
    enum media_status all; /* how every read ends, if not MEDIA_OK */
    uint64_t reads, blocks_read;
    bool is_read[MEDIUM_MIB * BLOCKS_MIB];

    uint8_t warning;
    uint64_t hours;
    uint8_t record[SELF_TEST_RECORD_MAX];
    size_t record_len;
    uint32_t writes;
    uint32_t found_nsid; /* what the test has found; 0: nothing */
    uint64_t found_lba;
};

static struct bed *bed;

uint64_t hal_now_us(void)
{
    return 0;
}

static bool submit_read(void *ctx, const struct media_io *io)
{
    assert_ptr_equal(ctx, bed);
    assert_int_equal(io->number, MEDIA_NO_NUMBER); /* nobody's command */
    assert_int_equal(io->op, MEDIA_READ);
    assert_true(io->fua);
    assert_false(bed->has_op);
    assert_int_equal(io->pieces[0].len_bytes, io->count_blocks * 512);
    /* The medium may read the pieces until the operation has ended. */
    assert_in_range((uintptr_t)io->pieces, (uintptr_t)&bed->test,
                    (uintptr_t)(&bed->test + 1) - sizeof(*io->pieces));
    bed->op = *io;
    bed->has_op = true;
    bed->reads++;
    bed->blocks_read += io->count_blocks;
    memset(&bed->is_read[io->first_lba], 1, io->count_blocks);
    return true;
}

static bool save_record(void *ctx, const uint8_t *record, size_t len)
{
    assert_ptr_equal(ctx, bed);
    memcpy(bed->record, record, len);
    bed->record_len = len;
    bed->writes++;
    return true;
}

static uint64_t read_hours(void *ctx)
{
    (void)ctx;
    return bed->hours;
}

static uint8_t read_warning(void *ctx)
{
    (void)ctx;
    return bed->warning;
}

static void note_unreadable(void *ctx, uint32_t nsid, uint64_t lba)
{
    assert_ptr_equal(ctx, bed);
    bed->found_nsid = nsid;
    bed->found_lba = lba;
}

static size_t drop_text(void *ctx, const char *text, size_t len)
{
    (void)ctx;
    (void)text;
    return len;
}

static bool no_submit(void *ctx, const struct media_io *io)
{
    (void)ctx;
    (void)io;
    return false;
}

static void start_volume(uint8_t block_shift)
{
    const struct volume_plan plan = {
        .count = 3, .size_mib = 3, .block_shift = block_shift};
    const struct volume_config volume = {
        .log = &bed->log,
        .medium_blocks = MEDIUM_MIB * BLOCKS_MIB,
        .identity = &bed->identity,
        .plan = &plan,
        .submit = no_submit,
    };
    volume_init(&bed->volume, &volume);
}

static void start_drive(void)
{
    const struct self_test_config config = {
        .log = &bed->log,
        .volume = &bed->volume,
        .medium_blocks = MEDIUM_MIB * BLOCKS_MIB,
        .buffer = bed->buffer,
        .store =
            {
                .state = bed->writes != 0 ? OPERATION_RECORD_OK
                                          : OPERATION_RECORD_NONE,
                .record = bed->record,
                .len = bed->record_len,
                .writes = bed->writes,
                .save = save_record,
                .ctx = bed,
            },
        .submit = submit_read,
        .submit_ctx = bed,
        .power_on_hours = read_hours,
        .critical_warning = read_warning,
        .found_unreadable = note_unreadable,
        .ctx = bed,
    };

    bed->has_op = false;
    self_test_init(&bed->test, &config);
}

static int setup(void **state)
{
    static const struct log_sink sink = {.write = drop_text};

    (void)state;
    bed = calloc(1, sizeof(*bed));
    assert_non_null(bed);
    log_init(&bed->log, sink);
    bed->bad = NO_BLOCK;
    bed->flaky = UINT32_MAX;
    start_volume(VOLUME_SHIFT_512);
    start_drive();
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    free(bed);
    return 0;
}

static void finish_read(void)
{
    enum media_status status = bed->all;

    if (bed->bad >= bed->op.first_lba &&
        bed->bad < bed->op.first_lba + bed->op.count_blocks && bed->flaky > 0) {
        bed->flaky--;
        status = MEDIA_READ_ERROR;
    }
    bed->has_op = false;
    media_end(bed->op.owner, status);
}

static bool is_running(void)
{
    struct nvmf_self_test command;

    (void)self_test_now(&bed->test, &command);
    return command.code != NVMF_SELF_TEST_NONE;
}

static void run_step(void)
{
    if (bed->has_op) {
        finish_read();
    }
    bed->now_us = self_test_step(&bed->test, bed->now_us);
}

static void run_to_end(void)
{
    for (unsigned int i = 0; is_running(); i++) {
        assert_true(i < STEPS_MAX);
        run_step();
    }
}

static void start_test(enum nvmf_self_test_code code, uint32_t nsid,
                       uint32_t namespaces)
{
    const struct nvmf_self_test command = {
        .code = code, .nsid = nsid, .namespaces = {namespaces}};

    bed->now_us = 0;
    self_test_start(&bed->test, &command);
}

static struct nvmf_self_test_result newest_result(void)
{
    struct nvmf_self_test_result result;

    assert_true(self_test_result(&bed->test, 0, &result));
    return result;
}

static void test_an_extended_test_reads_every_block_once(void **state)
{
    (void)state;
    start_test(NVMF_SELF_TEST_EXTENDED, 0xffffffff, 0x5);
    run_to_end();
    assert_int_equal(newest_result().end, NVMF_SELF_TEST_PASSED);
    assert_int_equal(newest_result().code, NVMF_SELF_TEST_EXTENDED);
    assert_int_equal(bed->blocks_read, 2 * 3 * BLOCKS_MIB);
    for (size_t i = 0; i < 9 * BLOCKS_MIB; i++) {
        size_t ns = i / (3 * BLOCKS_MIB);

        assert_int_equal(bed->is_read[i], ns != 1);
    }
}

static void test_reads_leave_time_to_hosts(void **state)
{
    (void)state;
    start_test(NVMF_SELF_TEST_EXTENDED, 1, 0x1);
    run_to_end();
    assert_int_equal(bed->reads, 3 * CHUNKS_MIB);
    assert_true(bed->now_us >= bed->reads * SELF_TEST_READ_INTERVAL_US);
}

static void test_no_read_starts_before_the_one_before_has_ended(void **state)
{
    (void)state;
    start_test(NVMF_SELF_TEST_EXTENDED, 1, 0x1);
    while (!bed->has_op) {
        run_step();
    }
    for (int i = 0; i < 10; i++) {
        bed->now_us = self_test_step(&bed->test, bed->now_us);
    }
    assert_int_equal(bed->reads, 1);
    run_to_end();
}

static void test_the_failing_block_is_found(void **state)
{
    (void)state;
    bed->bad = 3 * BLOCKS_MIB + 1234;
    start_test(NVMF_SELF_TEST_EXTENDED, 0xffffffff, 0x7);
    run_to_end();
    assert_int_equal(newest_result().end, NVMF_SELF_TEST_FAILED);
    assert_int_equal(newest_result().segment, 3);
    assert_true(newest_result().has_lba);
    assert_int_equal(newest_result().nsid, 2);
    assert_int_equal(newest_result().lba, 1234);
    assert_true(newest_result().has_status);
    assert_int_equal(newest_result().status, 0x281);
    assert_int_equal(bed->found_nsid, 2);
    assert_int_equal(bed->found_lba, 1234);
}

static void test_the_failing_block_is_counted_in_blocks_of_the_format(
    void **state)
{
    (void)state;
    start_volume(VOLUME_SHIFT_4096);
    start_drive();
    bed->bad = 3 * BLOCKS_MIB + 8 * 100 + 5;
    start_test(NVMF_SELF_TEST_EXTENDED, 2, 0x2);
    run_to_end();
    assert_int_equal(newest_result().nsid, 2);
    assert_int_equal(newest_result().lba, 100);
}

static void test_a_failure_that_does_not_last_names_no_block(void **state)
{
    (void)state;
    bed->bad = 77;
    bed->flaky = 3;
    start_test(NVMF_SELF_TEST_EXTENDED, 1, 0x1);
    run_to_end();
    assert_int_equal(newest_result().end, NVMF_SELF_TEST_FAILED);
    assert_int_equal(newest_result().segment, 3);
    assert_false(newest_result().has_lba);
    assert_int_equal(bed->found_nsid, 0);
}

/* A namespace may be deleted and created again while the test looks for the
 * block.  volume_locate() asserts that no read leaves the namespace. */
static void test_no_read_leaves_a_namespace_that_has_become_smaller(
    void **state)
{
    (void)state;
    bed->bad = 200;
    start_test(NVMF_SELF_TEST_EXTENDED, 0xffffffff, 0x7);
    while (bed->test.phase != SELF_TEST_LOCATING) {
        run_step();
    }
    bed->volume.table.ns[0].size_bytes = 150 * 512;
    volume_watch_writes(&bed->volume); /* the new size is in its maps */
    run_to_end();
    assert_int_equal(newest_result().end, NVMF_SELF_TEST_FAILED);
    assert_false(newest_result().has_lba);
}

static void test_another_error_of_the_medium_ends_the_test(void **state)
{
    (void)state;
    bed->all = MEDIA_INTERNAL_ERROR;
    start_test(NVMF_SELF_TEST_SHORT, 1, 0x1);
    run_to_end();
    assert_int_equal(newest_result().end, NVMF_SELF_TEST_FATAL);
    assert_false(newest_result().has_lba);
}

static void test_a_critical_warning_fails_the_health_segment(void **state)
{
    (void)state;
    bed->warning = 0x4;
    start_test(NVMF_SELF_TEST_SHORT, 0, 0);
    run_to_end();
    assert_int_equal(newest_result().end, NVMF_SELF_TEST_FAILED);
    assert_int_equal(newest_result().segment, 2);
    assert_int_equal(bed->reads, 0);
}

static void test_the_read_of_an_aborted_test_belongs_to_no_other(void **state)
{
    (void)state;
    start_test(NVMF_SELF_TEST_EXTENDED, 1, 0x1);
    while (!bed->has_op) {
        run_step();
    }
    self_test_stop(&bed->test, NVMF_SELF_TEST_BY_COMMAND);
    start_test(NVMF_SELF_TEST_EXTENDED, 1, 0x1);
    bed->has_op = false;
    media_end(bed->op.owner, MEDIA_READ_ERROR);
    bed->blocks_read = 0;
    run_to_end();
    assert_int_equal(newest_result().end, NVMF_SELF_TEST_PASSED);
    assert_int_equal(bed->blocks_read, 3 * BLOCKS_MIB);
}

static void test_an_extended_test_goes_on_after_a_power_cut(void **state)
{
    (void)state;
    start_test(NVMF_SELF_TEST_EXTENDED, 0xffffffff, 0x7);
    while (bed->reads < 5 * CHUNKS_MIB) {
        run_step();
    }
    memset(bed->is_read, 0, sizeof(bed->is_read));
    start_drive();
    assert_true(is_running());
    run_to_end();
    assert_int_equal(newest_result().end, NVMF_SELF_TEST_PASSED);
    assert_false(bed->is_read[0]); /* it did not begin again */
    for (size_t i = 5 * BLOCKS_MIB; i < 9 * BLOCKS_MIB; i++) {
        assert_true(bed->is_read[i]);
    }
}

static void test_a_power_cut_ends_a_short_test(void **state)
{
    (void)state;
    bed->hours = 7;
    start_test(NVMF_SELF_TEST_SHORT, 1, 0x1);
    start_drive();
    assert_false(is_running());
    assert_int_equal(newest_result().end, NVMF_SELF_TEST_BY_RESET);
    assert_int_equal(newest_result().code, NVMF_SELF_TEST_SHORT);
    assert_int_equal(newest_result().power_on_hours, 7);
}

static void test_a_test_of_a_namespace_that_is_gone_ends(void **state)
{
    (void)state;
    start_test(NVMF_SELF_TEST_EXTENDED, 0xffffffff, 0x8);
    run_to_end();
    assert_int_equal(newest_result().end, NVMF_SELF_TEST_PASSED);
    assert_int_equal(bed->reads, 0);
}

static void test_results_survive_and_the_oldest_is_dropped(void **state)
{
    (void)state;
    bed->warning = 1;
    start_test(NVMF_SELF_TEST_SHORT, 0, 0);
    run_to_end();
    bed->warning = 0;
    for (int i = 0; i < NVMF_SELF_TEST_RESULTS; i++) {
        struct nvmf_self_test_result oldest;

        bed->hours = (uint64_t)i;
        start_test(NVMF_SELF_TEST_SHORT, 0, 0);
        run_to_end();
        run_step();
        start_drive();
        assert_int_equal(newest_result().power_on_hours, i);
        if (i + 1 < NVMF_SELF_TEST_RESULTS) {
            assert_true(
                self_test_result(&bed->test, (unsigned int)i + 1, &oldest));
            assert_int_equal(oldest.end, NVMF_SELF_TEST_FAILED);
        } else {
            assert_true(self_test_result(&bed->test, 19, &oldest));
            assert_int_equal(oldest.end, NVMF_SELF_TEST_PASSED);
        }
    }
}

static void test_a_host_cannot_wear_the_flash_out(void **state)
{
    (void)state;
    for (int i = 0; i < OPERATION_SAVES_FREE; i++) {
        start_test(NVMF_SELF_TEST_SHORT, 0, 0);
        run_to_end();
        run_step();
    }
    assert_int_equal(bed->writes, OPERATION_SAVES_FREE);
    assert_true(bed->now_us < UINT64_MAX); /* it tries again later */
    bed->hours = 1;
    (void)self_test_step(&bed->test, bed->now_us);
    assert_int_equal(bed->writes, OPERATION_SAVES_FREE + 1);
}

static void test_a_damaged_record_is_no_result(void **state)
{
    struct nvmf_self_test_result result;

    (void)state;
    start_test(NVMF_SELF_TEST_SHORT, 0, 0);
    run_to_end();
    run_step();
    for (size_t len = 0; len < bed->record_len; len++) {
        struct self_test_state parsed;

        assert_false(self_test_record_parse(&parsed, bed->record, len));
    }
    bed->record_len--;
    start_drive();
    assert_false(is_running());
    assert_false(self_test_result(&bed->test, 0, &result));
}

TEST_FIXTURE(setup, teardown)
