/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory errors of a whole drive: payloads with wrong bits are corrected, or
 * the command fails; no host gets them as good data.
 */
#include "bed_fixture.h"

#include "nvmeof/rdma/rdma_limits.h"
#include "nvmeof/wire/cqe.h"
#include "tests/test_fixture.h"

enum { BLOCKS = 8, BUFFERS = 64 };

static struct hw_ecc *drive_ecc(void)
{
    return &bed.drive->machine.ecc;
}

static const struct memory_check *drive_memory(void)
{
    return &bed.drive->drive.memory;
}

/* Flip bits of the first word of each of the smallest buffers. */
static void flip_buffers(uint64_t bits)
{
    for (unsigned int i = 0; i < BUFFERS; i++) {
        assert_true(hw_ecc_inject(drive_ecc(),
                                  drive_memory()->config.buffers +
                                      (uint64_t)i * RDMA_SMALL_LEN,
                                  bits));
    }
}

static void test_a_single_error_in_a_buffer_is_corrected(void **state)
{
    (void)state;
    bed_connect(&bed, 0, 1, 64);
    assert_int_equal(bed_write(&bed, 1, 0, BLOCKS, HOST_DATA_KEYED, false, 1),
                     0);
    flip_buffers(1);
    bed_expect(&bed, 1, 0, BLOCKS, HOST_DATA_KEYED, 1);
    native_world_pass(&bed.world, 1000000);
    assert_true(drive_memory()->corrected > 0);
    assert_int_equal(drive_memory()->lost, 0);
    assert_true(drive_ecc()->count < BUFFERS); /* it was written back */
    assert_int_equal(bed.drive->drive.hw_log.records.error[0].kind,
                     HW_ERROR_MEMORY_CORRECTED);
}

static void test_a_read_into_a_lost_word_fails_and_the_next_one_works(
    void **state)
{
    (void)state;
    bed_connect(&bed, 0, 1, 64);
    assert_int_equal(bed_write(&bed, 1, 0, BLOCKS, HOST_DATA_KEYED, false, 1),
                     0);
    flip_buffers(3);
    assert_int_equal(bed_read(&bed, 1, 0, BLOCKS, HOST_DATA_KEYED) & 0x7ff,
                     NVME_SC_INTERNAL);
    native_world_pass(&bed.world, 1000000);
    assert_true(drive_memory()->lost > 0);
    assert_true(drive_ecc()->count < BUFFERS); /* the word was given up */
    while (hw_ecc_has_errors(drive_ecc())) {
        hw_ecc_write(drive_ecc(), drive_ecc()->words[0].addr, 8);
    }
    bed_expect(&bed, 1, 0, BLOCKS, HOST_DATA_KEYED, 1);
}

/* The patrol finds errors that nobody reads. */
static void test_an_error_that_nobody_reads_is_corrected_within_an_hour(
    void **state)
{
    (void)state;
    assert_true(hw_ecc_inject(drive_ecc(),
                              drive_memory()->config.dram_base +
                                  drive_memory()->config.dram_bytes - 8,
                              1));
    native_world_pass(&bed.world, UINT64_C(3700) * 1000000000);
    assert_false(hw_ecc_has_errors(drive_ecc()));
    assert_int_equal(drive_memory()->corrected, 1);
}

TEST_FIXTURE(setup, teardown)
