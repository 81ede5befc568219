/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory errors of a whole drive: payloads with wrong bits are corrected, or
 * the command fails; no host gets them as good data.
 */
#include "dram_flip.h"

#include <stdlib.h>

#include "nvmeof/rdma/rdma_limits.h"
#include "nvmeof/wire/cqe.h"
#include "tests/test_fixture.h"

enum { BLOCKS = 8, BUFFERS = 64, PART_US = 10000000 };

/* A failed assertion of the firmware ends the statement in which the test
 * expects it. */
void assert_failed(const char *expression, const char *file, int line)
{
    mock_assert(0, expression, file, line);
    abort();
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
                                      (uint64_t)i * BUF_SMALL_LEN,
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

/* Nothing but a connection of an echo service depends on its buffers. */
static void test_a_lost_word_of_an_echo_service_does_not_stop_the_drive(
    void **state)
{
    const struct tcp_echo *tcp = &bed.drive->drive.tcp.echo;
    const uint8_t *rdma = bed.drive->drive.echo.config.memory;
    const uint64_t words[] = {
        hal_dma_addr(tcp->conns[0].ring),
        hal_dma_addr(tcp->conns[TCP_ECHO_CONNS - 1].ring) +
            (1u << TCP_ECHO_RING_LOG2) - ECC_WORD_BYTES,
        hal_dma_addr(rdma),
        hal_dma_addr(rdma) + ECHO_MEMORY_LEN - ECC_WORD_BYTES,
    };

    (void)state;
    for (unsigned int i = 0; i < ARRAY_LEN(words); i++) {
        assert_true(hw_ecc_inject(drive_ecc(), words[i], TWO));
        assert_false(hw_ecc_read(drive_ecc(), words[i], 1, true));
        native_world_pass(&bed.world, 1000000);
        assert_int_equal(drive_memory()->lost, i + 1);
        assert_false(hw_ecc_has_errors(drive_ecc()));
    }
    start_with_data();
    bed_expect(&bed, 1, 0, BLOCKS, HOST_DATA_KEYED, 1);
}

/* ---- Words without which the firmware cannot go on. */

/* A word of the memory for messages of the management block. */
static uint64_t find_word(void)
{
    return hal_dma_addr(bed.drive->drive.mgmt.out);
}

/* A device reads a lost word, and the firmware stops. */
static void stop_at_lost_word(uint64_t addr)
{
    assert_true(hw_ecc_inject(drive_ecc(), addr, TWO));
    assert_false(hw_ecc_read(drive_ecc(), addr, 1, true));
    expect_assert_failure(native_world_pass(&bed.world, 1000000));
}

static const struct hw_error *last_error(void)
{
    const struct hw_error_records *records = &bed.drive->drive.hw_log.records;

    assert_int_not_equal(records->count, 0);
    return &records->error[records->count - 1];
}

/* The word stays lost until the start, so that no device takes zeroes for good
 * data before the reset. */
static void test_a_lost_word_is_logged_before_the_firmware_stops(void **state)
{
    uint64_t addr = find_word();
    const struct hw_log *log = &bed.drive->drive.hw_log;

    (void)state;
    stop_at_lost_word(addr);
    assert_int_equal(last_error()->kind, HW_ERROR_MEMORY_LOST);
    assert_int_equal(last_error()->address, addr);
    assert_true(last_error()->is_fatal);
    assert_int_equal(log->saved, log->number); /* it is in flash */
    assert_true(log_is_empty(&bed.drive->log));
    assert_true(hw_ecc_has_errors(drive_ecc()));
    bed_reset(&bed);
    assert_false(hw_ecc_has_errors(drive_ecc()));
    native_world_pass(&bed.world, 1000000);
    assert_int_equal(drive_memory()->lost, 1);
    assert_int_equal(bed.drive->drive.hw_log.records.count, 0);
}

/* The log may be full of errors that only ended a connection each. */
static void test_a_lost_word_is_logged_after_many_fatal_errors(void **state)
{
    struct hw_error other = {.kind = HW_ERROR_RNIC_TRANSFER, .is_fatal = true};

    (void)state;
    for (uint32_t i = 0; i < 2 * HW_LOG_MOST; i++) {
        hw_log_note(&bed.drive->drive.hw_log, &other, 1000000);
    }
    stop_at_lost_word(find_word());
    assert_int_equal(last_error()->kind, HW_ERROR_MEMORY_LOST);
    assert_int_equal(bed.drive->drive.hw_log.saved, last_error()->number);
    bed_reset(&bed);
}

static void test_a_lost_word_that_a_hart_has_found_is_logged_after_the_reset(
    void **state)
{
    uint64_t addr = find_word();

    (void)state;
    assert_true(hw_ecc_inject(drive_ecc(), addr, TWO));
    assert_false(hw_ecc_read(drive_ecc(), addr, 8, false)); /* the hart traps */
    bed_reset(&bed);
    assert_int_equal(last_error()->kind, HW_ERROR_MEMORY_LOST);
    assert_int_equal(last_error()->address, addr);
    native_world_pass(&bed.world, 1000000);
    assert_int_equal(bed.drive->drive.hw_log.saved, last_error()->number);
    assert_false(hw_ecc_has_errors(drive_ecc()));
}

/* The register has only the first word that was lost; the word at which the
 * firmware stopped is in the record of the panic. */
static void test_both_lost_words_are_logged_after_the_reset(void **state)
{
    uint64_t addr = find_word();
    const struct telemetry_panic panic = {
        .is_trap = true,
        .mcause = 5,
        .mtval = addr + 8 + 4,
        .file = "",
    };

    (void)state;
    assert_true(hw_ecc_inject(drive_ecc(), addr, TWO));
    assert_false(hw_ecc_read(drive_ecc(), addr, 8, true));
    bed.panic = &panic;
    bed_reset(&bed);
    bed.panic = NULL;
    assert_int_equal(last_error()->kind, HW_ERROR_MEMORY_LOST);
    assert_int_equal(last_error()->address, addr + 8);
    assert_int_equal((last_error() - 1)->address, addr);
}

/* The firmware never writes some of this memory before a device reads it. */
static void test_a_reset_clears_lost_words_that_nobody_has_read(void **state)
{
    const struct port *port = &bed.drive->drive.net.ports.port[0].port;
    const void *memory[] = {
        bed.drive->drive.mgmt.out,
        bed.drive->drive.mgmt.in,
        port->rx_buffers,
        port->tx_buffers,
        bed.drive->drive.mgmt.records,
    };

    (void)state;
    for (unsigned int i = 0; i < ARRAY_LEN(memory); i++) {
        assert_true(
            hw_ecc_inject(drive_ecc(), hal_dma_addr(memory[i]) + 64, TWO));
    }
    assert_true(
        hw_ecc_inject(drive_ecc(), drive_memory()->config.buffers, TWO));
    bed_reset(&bed);
    assert_false(hw_ecc_has_errors(drive_ecc()));
}

/* ---- Errors that are corrected later. */

static void test_an_error_that_was_found_before_the_start_is_corrected(
    void **state)
{
    uint64_t addr = SOC_SRAM_BASE + 64;

    (void)state;
    assert_true(hw_ecc_inject(drive_ecc(), addr, ONE));
    assert_true(hw_ecc_read(drive_ecc(), addr, 8, false));
    bed_reset(&bed);
    assert_false(hw_ecc_has_errors(drive_ecc()));
    assert_int_equal(last_error()->kind, HW_ERROR_MEMORY_CORRECTED);
    assert_int_equal(last_error()->address, addr);
    assert_true(drive_memory()->corrected > 0);
}

static void test_an_error_of_sram_is_corrected_within_an_hour(void **state)
{
    (void)state;
    assert_true(hw_ecc_inject(drive_ecc(), SOC_SRAM_BASE + 64, ONE));
    assert_true(
        hw_ecc_inject(drive_ecc(), SOC_SRAM_BASE + SOC_SRAM_SIZE - 8, ONE));
    native_world_pass(&bed.world, UINT64_C(1000) * (PART_US + 1000000));
    assert_false(hw_ecc_has_errors(drive_ecc()));
    assert_true(hw_ecc_inject(drive_ecc(), SOC_SRAM_BASE + 64, ONE));
    native_world_pass(&bed.world, UINT64_C(3700) * 1000000000);
    assert_false(hw_ecc_has_errors(drive_ecc()));
    assert_int_equal(drive_memory()->corrected, 3);
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

/* The patrol reports words that are lost.  It does not set them to zero, since
 * whoever reads them next would not notice that. */
static void test_a_lost_word_that_nobody_reads_is_reported_and_stays(
    void **state)
{
    const struct hw_log *log = &bed.drive->drive.hw_log;
    const uint64_t addr[] = {find_word() + 64, find_word(),
                             drive_memory()->config.buffers};

    (void)state;
    for (unsigned int i = 0; i < ARRAY_LEN(addr); i++) {
        assert_true(hw_ecc_inject(drive_ecc(), addr[i], TWO));
    }
    native_world_pass(&bed.world, UINT64_C(3604) * 1000000000);
    assert_int_equal(drive_ecc()->count, ARRAY_LEN(addr));
    assert_int_equal(drive_memory()->lost, ARRAY_LEN(addr));
    assert_int_equal(log->records.count, ARRAY_LEN(addr));
    for (unsigned int i = 0; i < ARRAY_LEN(addr); i++) {
        const struct hw_error *error = &log->records.error[i];
        bool is_known = false;

        assert_int_equal(error->kind, HW_ERROR_MEMORY_LOST);
        assert_false(error->is_fatal);
        for (unsigned int k = 0; k < ARRAY_LEN(addr); k++) {
            is_known |= error->address == addr[k];
        }
        assert_true(is_known);
    }
    assert_int_equal(log->saved, log->number);
    assert_non_null(
        strstr(machine_console(&bed.drive->machine), "the patrol has found"));
}

/* The patrol does not take over what a device has found before. */
static void test_a_patrol_first_handles_what_devices_have_found(void **state)
{
    struct memory_check *memory = &bed.drive->drive.memory;
    uint64_t buffer = memory->config.buffers;

    (void)state;
    assert_true(hw_ecc_inject(drive_ecc(), buffer, TWO));
    assert_false(hw_ecc_read(drive_ecc(), buffer, 1, true));
    memory->patrol_addr = (buffer - memory->config.dram_base) & ~UINT64_C(4095);
    memory->has_irq = false;
    memory->patrol_us = 0;
    (void)memory_check_step(memory, bed.drive->drive.now_us);
    assert_false(hw_ecc_has_errors(drive_ecc()));
    assert_int_equal(memory->lost, 1);
    assert_int_equal(last_error()->address, buffer);
    assert_true(last_error()->is_fatal);
}

TEST_FIXTURE(setup, teardown)
