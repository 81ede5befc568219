/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Long-running operations of the whole drive: what is on the medium after a
 * sanitize operation, also when the power was cut meanwhile, and what commands
 * get while it is in progress or has failed.
 */
#include <errno.h>

#include "bed_fixture.h"

#include "lib/bytes.h"
#include "nvmeof/wire/log.h"
#include "nvmeof/wire/opcode.h"
#include "tests/test_fixture.h"

#define US_NS UINT64_C(1000)
#define MS_NS (1000 * US_NS)

enum {
    BLOCK_ERASE = 2,
    OVERWRITE_TWICE = 3 | 2 << 4,
    EXIT_FAILURE_MODE = 1,
    AUSE = 0x8,
    KEEP_BLOCKS = 0x200,
    BLOCKS = 256,
    CUTS = 60,
    WAITS_MAX = 100000,
    STC_EXTENDED = 2,
    SELF_TEST_FAILED = 7,
};
#define PATTERN 0x600df00du

static uint16_t send_admin(uint8_t opcode, uint32_t nsid, uint32_t cdw10,
                           uint32_t cdw11)
{
    const struct nvme_sqe sqe = {
        .opcode = opcode, .nsid = nsid, .cdw10 = cdw10, .cdw11 = cdw11};

    return host_command(&bed.host->host, 0, &sqe, NULL, 0) & NVME_SC_MASK;
}

static uint16_t send_sanitize(uint32_t cdw10)
{
    return send_admin(ADMIN_SANITIZE, 0, cdw10, PATTERN);
}

/* The status in log page 81h. */
static uint16_t log_status(void)
{
    uint8_t page[LOG_SANITIZE_LEN];

    assert_int_equal(
        host_get_log(&bed.host->host, LOG_SANITIZE, 0, page, sizeof(page)), 0);
    return get_le16(page + SANITIZE_STATUS);
}

static uint16_t wait_ended(void)
{
    for (int i = 0; (log_status() & 7) == NVMF_SANITIZE_IN_PROGRESS; i++) {
        assert_true(i < WAITS_MAX);
        native_world_pass(&bed.world, 100 * US_NS);
    }
    return log_status();
}

/* Every dword of what a power cut would leave. */
static void expect_medium(uint32_t word)
{
    for (size_t at = 0; at < BED_MEDIUM_BYTES; at += 4) {
        if (get_le32(bed.medium.durable + at) != word) {
            fail_msg("byte %zu of the medium is part of %08x", at,
                     get_le32(bed.medium.durable + at));
        }
    }
}

/* Data at the beginning, in the middle and at the end, some of it flushed. */
static void write_data(uint32_t version)
{
    uint64_t size = BED_MEDIUM_BYTES / BED_BLOCK;

    assert_int_equal(
        bed_write(&bed, 1, 0, BLOCKS, HOST_DATA_KEYED, false, version), 0);
    assert_int_equal(
        bed_write(&bed, 1, size / 2, BLOCKS, HOST_DATA_KEYED, true, version),
        0);
    assert_int_equal(bed_flush(&bed, 1), 0);
    assert_int_equal(bed_write(&bed, 1, size - BLOCKS, BLOCKS, HOST_DATA_KEYED,
                               false, version),
                     0);
}

static void cut_power(void)
{
    bed_power_cycle(&bed);
    host_vanish(&bed.host->host);
    bed_connect(&bed, 0, 1, 64);
}

static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static void test_power_cuts_at_any_moment_leave_no_data(void **state)
{
    static const struct {
        uint32_t cdw10, word;
    } jobs[] = {
        {BLOCK_ERASE, 0},
        {BLOCK_ERASE | KEEP_BLOCKS, 0},
        {OVERWRITE_TWICE, 0},
        {OVERWRITE_TWICE | KEEP_BLOCKS, PATTERN},
    };
    uint64_t random = 0x5eed;
    unsigned int interrupted = 0;

    (void)state;
    bed_connect(&bed, 0, 1, 64);
    for (uint32_t i = 0; i < CUTS; i++) {
        uint32_t job = i % ARRAY_LEN(jobs);

        write_data(i + 1);
        assert_int_equal(send_sanitize(jobs[job].cdw10), 0);
        for (uint32_t cut = 0; cut < 1 + i % 3; cut++) {
            native_world_pass(&bed.world, next_random(&random) % (2 * MS_NS));
            cut_power();
            assert_true((log_status() & 7) == NVMF_SANITIZE_IN_PROGRESS ||
                        (log_status() & 7) == NVMF_SANITIZE_DONE);
            if ((log_status() & 7) == NVMF_SANITIZE_IN_PROGRESS) {
                interrupted++;
                assert_int_equal(bed_read(&bed, 1, 0, 1, HOST_DATA_KEYED) &
                                     NVME_SC_MASK,
                                 NVME_SC_SANITIZE_IN_PROGRESS);
            }
        }
        assert_int_equal(wait_ended() & 0x107,
                         NVMF_SANITIZE_DONE | SANITIZE_STATUS_ERASED);
        expect_medium(jobs[job].word);
        assert_int_equal(bed_read(&bed, 1, 0, 1, HOST_DATA_KEYED), 0);
        assert_int_equal(get_le32(bed.host->data), jobs[job].word);
    }
    assert_true(interrupted > CUTS / 4);
}

static void test_a_failure_can_be_left_only_if_it_was_unrestricted(void **state)
{
    (void)state;
    bed_connect(&bed, 0, 1, 64);
    bed.medium.fail_writes = -EIO;
    assert_int_equal(send_sanitize(BLOCK_ERASE), 0);
    assert_int_equal(wait_ended() & 0x107, NVMF_SANITIZE_FAILED);
    assert_int_equal(bed_read(&bed, 1, 0, 1, HOST_DATA_KEYED) & NVME_SC_MASK,
                     NVME_SC_SANITIZE_FAILED);
    assert_int_equal(send_admin(ADMIN_FORMAT_NVM, 1, 0, 0),
                     NVME_SC_SANITIZE_FAILED);
    assert_int_equal(send_sanitize(EXIT_FAILURE_MODE), NVME_SC_SANITIZE_FAILED);
    assert_int_equal(send_sanitize(BLOCK_ERASE | AUSE),
                     NVME_SC_SANITIZE_FAILED);
    cut_power();
    assert_int_equal(log_status() & 7, NVMF_SANITIZE_FAILED);
    assert_int_equal(bed_read(&bed, 1, 0, 1, HOST_DATA_KEYED) & NVME_SC_MASK,
                     NVME_SC_SANITIZE_FAILED);
    bed.medium.fail_writes = 0;
    assert_int_equal(send_sanitize(BLOCK_ERASE), 0);
    assert_int_equal(wait_ended() & 7, NVMF_SANITIZE_DONE);
    assert_int_equal(bed_read(&bed, 1, 0, 1, HOST_DATA_KEYED), 0);

    bed.medium.fail_writes = -EIO;
    assert_int_equal(send_sanitize(BLOCK_ERASE | AUSE), 0);
    assert_int_equal(wait_ended() & 7, NVMF_SANITIZE_FAILED);
    bed.medium.fail_writes = 0;
    assert_int_equal(send_sanitize(EXIT_FAILURE_MODE), 0);
    assert_int_equal(log_status() & 7, NVMF_SANITIZE_FAILED);
    assert_int_equal(bed_read(&bed, 1, 0, 1, HOST_DATA_KEYED), 0);
}

static void test_a_sanitize_that_is_not_in_flash_does_not_begin(void **state)
{
    (void)state;
    bed_connect(&bed, 0, 1, 64);
    write_data(1);
    bed.drive->is_flash_broken = true;
    assert_int_equal(send_sanitize(BLOCK_ERASE), NVME_SC_INTERNAL);
    bed_expect(&bed, 1, 0, BLOCKS, HOST_DATA_KEYED, 1);
    assert_int_equal(log_status() & 7, NVMF_SANITIZE_NEVER);
}

static void test_the_first_write_ends_global_data_erased(void **state)
{
    (void)state;
    bed_connect(&bed, 0, 1, 64);
    assert_int_equal(send_sanitize(BLOCK_ERASE), 0);
    (void)wait_ended();
    cut_power();
    assert_true(log_status() & SANITIZE_STATUS_ERASED);
    assert_int_equal(bed_read(&bed, 1, 0, 1, HOST_DATA_KEYED), 0);
    assert_true(log_status() & SANITIZE_STATUS_ERASED);
    assert_int_equal(bed_write(&bed, 1, 9, 1, HOST_DATA_KEYED, true, 1), 0);
    cut_power();
    assert_false(log_status() & SANITIZE_STATUS_ERASED);
    bed_expect(&bed, 1, 9, 1, HOST_DATA_KEYED, 1);
}

static void test_a_self_test_finds_that_the_medium_cannot_be_read(void **state)
{
    uint8_t page[LOG_SELF_TEST_LEN];
    const uint8_t *newest = page + SELF_TEST_RESULTS;

    (void)state;
    bed_connect(&bed, 0, 1, 64);
    bed.medium.fail_reads = -EIO;
    assert_int_equal(send_admin(ADMIN_DEVICE_SELF_TEST, 1, STC_EXTENDED, 0), 0);
    do {
        native_world_pass(&bed.world, MS_NS);
        assert_int_equal(
            host_get_log(&bed.host->host, LOG_SELF_TEST, 0, page, sizeof(page)),
            0);
    } while (page[SELF_TEST_CURRENT] != 0);
    assert_int_equal(newest[SELF_TEST_RESULT_STATUS],
                     STC_EXTENDED << 4 | SELF_TEST_FAILED);
    assert_int_equal(newest[SELF_TEST_RESULT_SEGMENT], 3);
    assert_int_equal(newest[SELF_TEST_RESULT_VALID], 0xf);
    assert_int_equal(get_le32(newest + SELF_TEST_RESULT_NSID), 1);
    assert_int_equal(get_le64(newest + SELF_TEST_RESULT_LBA), 0);
    assert_int_equal(newest[SELF_TEST_RESULT_SCT], 2);
    assert_int_equal(newest[SELF_TEST_RESULT_SC], 0x81);
}

TEST_FIXTURE(setup, teardown)
