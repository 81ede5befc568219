/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory errors of a whole drive: payloads with wrong bits are corrected, or
 * the command fails; no host gets them as good data.
 */
#include "dram_flip.h"

#include "nvmeof/rdma/rdma_limits.h"
#include "nvmeof/wire/cqe.h"
#include "tests/test_fixture.h"

enum { BLOCKS = 8, BUFFERS = 64 };

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

/* Whether a device reads a payload. */
static bool is_payload(uint64_t *addr, uint64_t len)
{
    (void)len;
    return *addr - drive_memory()->config.buffers <
           drive_memory()->config.buffers_bytes;
}

static void start_with_data(void)
{
    memset(&flip, 0, sizeof(flip));
    bed_connect(&bed, 0, 1, 64);
    assert_int_equal(bed_write(&bed, 1, 0, BLOCKS, HOST_DATA_KEYED, false, 1),
                     0);
}

static void test_a_single_error_in_a_buffer_is_corrected(void **state)
{
    (void)state;
    start_with_data();
    flip_at(is_payload, 8, ONE);
    bed_expect(&bed, 1, 0, BLOCKS, HOST_DATA_KEYED, 1);
    assert_int_equal(flip.flips, 1);
    native_world_pass(&bed.world, 1000000);
    assert_true(drive_memory()->corrected > 0);
    assert_int_equal(drive_memory()->lost, 0);
    assert_false(hw_ecc_has_errors(drive_ecc())); /* it was written back */
    assert_int_equal(bed.drive->drive.hw_log.records.error[0].kind,
                     HW_ERROR_MEMORY_CORRECTED);
}

static void test_a_write_of_a_lost_word_fails_and_the_next_one_works(
    void **state)
{
    (void)state;
    start_with_data();
    flip_at(is_payload, 8, TWO);
    assert_int_equal(bed_write(&bed, 1, 0, BLOCKS, HOST_DATA_KEYED, false, 2) &
                         NVME_SC_MASK,
                     NVME_SC_INTERNAL);
    assert_int_equal(flip.flips, 1);
    native_world_pass(&bed.world, 1000000);
    assert_int_equal(drive_memory()->lost, 1);
    assert_false(hw_ecc_has_errors(drive_ecc())); /* the word was given up */
    bed_expect(&bed, 1, 0, BLOCKS, HOST_DATA_KEYED, 1);
    assert_int_equal(bed_write(&bed, 1, 0, BLOCKS, HOST_DATA_KEYED, false, 2),
                     0);
    bed_expect(&bed, 1, 0, BLOCKS, HOST_DATA_KEYED, 2);
}

/* The media engine overwrites the words when it reads from the medium, and the
 * RNIC when it receives a payload. */
static void test_a_device_that_overwrites_lost_words_makes_them_right(
    void **state)
{
    (void)state;
    start_with_data();
    flip_buffers(TWO);
    bed_expect(&bed, 1, 0, BLOCKS, HOST_DATA_KEYED, 1);
    assert_true(drive_ecc()->count < BUFFERS);
    while (hw_ecc_has_errors(drive_ecc())) {
        assert_true(
            hw_ecc_write(drive_ecc(), drive_ecc()->words[0].addr, 8, true));
    }
    flip_buffers(TWO);
    assert_int_equal(bed_write(&bed, 1, 0, BLOCKS, HOST_DATA_KEYED, false, 2),
                     0);
    assert_true(drive_ecc()->count < BUFFERS);
    assert_int_equal(drive_memory()->lost, 0);
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
