/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The memory patrol and what follows from errors of memory, with an ECC block
 * that the test plays: it knows which words are lost, and keeps the address of
 * the first one that was found, as the hardware does.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "firmware/hal/dram.h"
#include "firmware/hal/time.h"
#include "firmware/memory/memory_check.h"
#include "tests/test_fixture.h"

#define DRAM_BASE UINT64_C(0x80000000)
#define SRAM_BASE UINT64_C(0x10000)
#define PART_US   UINT64_C(10000000)
#define HOUR_US   UINT64_C(3600000000)

enum {
    DRAM_BYTES = 16 << 20,
    SRAM_BYTES = 0x8000,
    BUFFERS = 0x100000, /* from the beginning of DRAM */
    BUFFERS_BYTES = 0x10000,
    LOST_MAX = 4,
    RANGES_MAX = 1000,
};

static struct {
    struct memory_check check;
    struct memory_check_config config;
    struct hw_log errors;
    struct log log;
    char console[4096];
    size_t console_len;
    /* The hardware. */
    struct ecc_findings found;
    uint64_t lost[LOST_MAX]; /* 0: none */
    bool is_armed;
    struct {
        uint64_t addr, len;
    } scrubbed[RANGES_MAX];
    unsigned int scrubs;
    /* The medium. */
    uint64_t medium_word; /* that it can do without */
    bool is_noted;
} bed;

void assert_failed(const char *expression, const char *file, int line)
{
    mock_assert(0, expression, file, line);
    abort();
}

uint64_t hal_now_us(void)
{
    return 0;
}

uint64_t hal_dma_addr(const void *memory)
{
    return (uint64_t)(uintptr_t)memory;
}

bool ecc_init(struct ecc *ecc, uintptr_t regs)
{
    ecc->regs = regs;
    return regs != 0;
}

void ecc_arm(const struct ecc *ecc)
{
    (void)ecc;
    bed.is_armed = true;
}

void ecc_take(const struct ecc *ecc, struct ecc_findings *findings)
{
    (void)ecc;
    *findings = bed.found;
    bed.found.has_corrected = bed.found.has_uncorrected = false;
}

bool ecc_has_lost(const struct ecc *ecc, uint64_t *addr)
{
    (void)ecc;
    *addr = bed.found.uncorrected_addr;
    return bed.found.has_uncorrected;
}

void ecc_scrub(const struct ecc *ecc, uint64_t addr, uint32_t len_bytes)
{
    (void)ecc;
    assert_true(bed.scrubs < RANGES_MAX);
    bed.scrubbed[bed.scrubs].addr = addr;
    bed.scrubbed[bed.scrubs++].len = len_bytes;
}

void ecc_clear(const struct ecc *ecc, uint64_t addr, uint64_t len_bytes)
{
    (void)ecc;
    assert_int_equal(len_bytes, ECC_WORD_BYTES);
    for (unsigned int i = 0; i < LOST_MAX; i++) {
        bed.lost[i] = bed.lost[i] == addr ? 0 : bed.lost[i];
    }
}

static void find_lost(uint64_t addr, bool is_by_dma)
{
    bed.found.uncorrected++;
    if (!bed.found.has_uncorrected) {
        bed.found.has_uncorrected = true;
        bed.found.uncorrected_addr = addr;
        bed.found.is_by_dma = is_by_dma;
    }
}

bool ecc_check(const struct ecc *ecc, uint64_t addr, uint32_t len_bytes)
{
    uint64_t first = UINT64_MAX;

    (void)ecc;
    for (unsigned int i = 0; i < LOST_MAX; i++) {
        if (bed.lost[i] != 0 && bed.lost[i] + ECC_WORD_BYTES > addr &&
            bed.lost[i] < addr + len_bytes) {
            first = MIN(first, bed.lost[i]);
        }
    }
    if (first != UINT64_MAX) {
        find_lost(first, true);
    }
    return !bed.found.has_uncorrected;
}

/* ---- The drive around it. */

static bool medium_spares_word(void *ctx, uint64_t addr)
{
    assert_ptr_equal(ctx, &bed);
    return addr == bed.medium_word;
}

static bool is_noted(void *ctx)
{
    assert_ptr_equal(ctx, &bed);
    return bed.is_noted;
}

static size_t keep_text(void *ctx, const char *text, size_t len)
{
    (void)ctx;
    assert_true(bed.console_len + len < sizeof(bed.console));
    memcpy(bed.console + bed.console_len, text, len);
    bed.console_len += len;
    return len;
}

static void drain_text(void *ctx)
{
    (void)ctx;
}

static int new_bed(void **state)
{
    const struct log_sink sink = {.write = keep_text, .drain = drain_text};
    const struct hw_log_config errors = {.boot = 5};

    (void)state;
    memset(&bed, 0, sizeof(bed));
    log_init(&bed.log, sink);
    hw_log_init(&bed.errors, &errors);
    bed.is_noted = true;
    bed.config = (struct memory_check_config){
        .regs = 1,
        .log = &bed.log,
        .errors = &bed.errors,
        .dram_base = DRAM_BASE,
        .dram_bytes = DRAM_BYTES,
        .sram_base = SRAM_BASE,
        .sram_bytes = SRAM_BYTES,
        .buffers = DRAM_BASE + BUFFERS,
        .buffers_bytes = BUFFERS_BYTES,
        .lost_word = medium_spares_word,
        .patrolled_word = medium_spares_word,
        .is_noted = is_noted,
        .ctx = &bed,
    };
    return 0;
}

static void start_check(void)
{
    memory_check_init(&bed.check, &bed.config, 0);
}

static void expect_text(const char *text)
{
    log_flush(&bed.log);
    bed.console[bed.console_len] = '\0';
    if (strstr(bed.console, text) == NULL) {
        fail_msg("the log has no \"%s\": %s", text, bed.console);
    }
}

/* The newest entry of the log of hardware errors, of which there are `count`.
 */
static void expect_error(uint32_t count, enum hw_error_kind kind,
                         uint64_t address, bool is_fatal)
{
    const struct hw_error_records *records = &bed.errors.records;

    assert_int_equal(records->count, count);
    assert_int_equal(records->error[count - 1].kind, kind);
    assert_int_equal(records->error[count - 1].address, address);
    assert_int_equal(records->error[count - 1].is_fatal, is_fatal);
}

static bool is_lost(uint64_t addr)
{
    for (unsigned int i = 0; i < LOST_MAX; i++) {
        if (bed.lost[i] == addr) {
            return true;
        }
    }
    return false;
}

/* ---- The patrol. */

static void test_an_hour_covers_every_word_of_dram_and_sram_once(void **state)
{
    uint64_t due_us = 0, next = DRAM_BASE;
    unsigned int sram = 0;

    (void)state;
    start_check();
    while ((due_us = memory_check_step(&bed.check, due_us)) <= HOUR_US) {
        assert_int_equal(due_us % PART_US, 0);
    }
    for (unsigned int i = 0; i < bed.scrubs; i++) {
        if (bed.scrubbed[i].addr == SRAM_BASE) {
            assert_int_equal(bed.scrubbed[i].len, SRAM_BYTES);
            sram++;
        } else if (next < DRAM_BASE + DRAM_BYTES) {
            assert_int_equal(bed.scrubbed[i].addr, next);
            next += bed.scrubbed[i].len;
        }
    }
    assert_true(next >= DRAM_BASE + DRAM_BYTES);
    assert_true(sram >= 1);
}

static void test_the_patrol_begins_again_at_the_end_of_memory(void **state)
{
    uint64_t due_us = 0;

    (void)state;
    start_check();
    for (unsigned int i = 0; i < RANGES_MAX / 2; i++) {
        due_us = memory_check_step(&bed.check, due_us);
    }
    for (unsigned int i = 0; i < bed.scrubs; i++) {
        assert_true(bed.scrubbed[i].addr == SRAM_BASE ||
                    bed.scrubbed[i].addr - DRAM_BASE < DRAM_BYTES);
    }
    /* SRAM comes before the first part, and only then. */
    assert_int_equal(bed.scrubbed[0].addr, SRAM_BASE);
    for (unsigned int i = 1; i < bed.scrubs; i++) {
        assert_int_equal(bed.scrubbed[i].addr == DRAM_BASE,
                         bed.scrubbed[i - 1].addr == SRAM_BASE);
    }
}

/* Let the patrol look at the first part, which has the words that are lost. */
static void patrol_first_part(void)
{
    start_check();
    assert_int_equal(memory_check_step(&bed.check, 0), PART_US);
    assert_int_equal(memory_check_step(&bed.check, PART_US), 2 * PART_US);
}

static void test_the_patrol_reports_a_word_that_stays_lost(void **state)
{
    (void)state;
    bed.lost[0] = DRAM_BASE + 0x100;
    patrol_first_part();
    expect_text("memory: the patrol has found that the word at 0x80000100 is "
                "lost; it stays lost until it is written");
    expect_error(1, HW_ERROR_MEMORY_LOST, DRAM_BASE + 0x100, false);
    assert_true(is_lost(DRAM_BASE + 0x100));
}

static void test_the_patrol_clears_a_word_of_the_write_buffer(void **state)
{
    (void)state;
    bed.lost[0] = bed.medium_word = DRAM_BASE + 0x100;
    patrol_first_part();
    expect_text("memory: the patrol has found that the word at 0x80000100 is "
                "lost; its block in the write buffer is lost");
    expect_error(1, HW_ERROR_MEMORY_LOST, DRAM_BASE + 0x100, true);
    assert_false(is_lost(DRAM_BASE + 0x100));
}

static void test_the_patrol_finds_all_lost_words_of_a_part(void **state)
{
    static const uint64_t words[] = {DRAM_BASE, DRAM_BASE + 8,
                                     DRAM_BASE + 0xb000 - 8, SRAM_BASE + 16};

    (void)state;
    memcpy(bed.lost, words, sizeof(words));
    bed.medium_word = DRAM_BASE + 8;
    patrol_first_part();
    assert_int_equal(bed.errors.records.count, 4);
    assert_int_equal(bed.errors.records.error[0].address, SRAM_BASE + 16);
    for (unsigned int i = 0; i < 3; i++) {
        assert_int_equal(bed.errors.records.error[i + 1].address, words[i]);
        assert_int_equal(is_lost(words[i]), i != 1);
    }
    assert_int_equal(bed.check.lost, 4);
}

/* ---- Errors that are found when something reads the word. */

static void test_a_corrected_word_is_written_back(void **state)
{
    (void)state;
    start_check();
    bed.found = (struct ecc_findings){.has_corrected = true,
                                      .corrected = 3,
                                      .corrected_addr = DRAM_BASE + 0x40};
    memory_check_irq(&bed.check);
    (void)memory_check_step(&bed.check, 1000);
    assert_int_equal(bed.scrubs, 1);
    assert_int_equal(bed.scrubbed[0].addr, DRAM_BASE + 0x40);
    assert_int_equal(bed.scrubbed[0].len, ECC_WORD_BYTES);
    expect_error(1, HW_ERROR_MEMORY_CORRECTED, DRAM_BASE + 0x40, false);
    expect_text("memory: an error at 0x80000040 was corrected; 3 since "
                "power-on");
}

static void test_one_corrected_word_a_minute_is_logged(void **state)
{
    size_t len;

    (void)state;
    start_check();
    for (unsigned int i = 0; i < 3; i++) {
        bed.found.has_corrected = true;
        memory_check_irq(&bed.check);
        (void)memory_check_step(&bed.check, i * UINT64_C(20000000));
        log_flush(&bed.log);
        if (i == 0) {
            len = bed.console_len;
            assert_true(len > 0);
        }
        assert_int_equal(bed.console_len, len);
    }
    bed.found.has_corrected = true;
    memory_check_irq(&bed.check);
    (void)memory_check_step(&bed.check, UINT64_C(60000000));
    log_flush(&bed.log);
    assert_true(bed.console_len > len);
}

static void test_a_lost_word_of_a_payload_is_cleared(void **state)
{
    uint64_t word = DRAM_BASE + BUFFERS + BUFFERS_BYTES - 8;

    (void)state;
    start_check();
    bed.lost[0] = word;
    find_lost(word, true);
    assert_true(memory_check_look(&bed.check, 1000));
    assert_false(memory_check_look(&bed.check, 1000));
    assert_false(is_lost(word));
    expect_error(1, HW_ERROR_MEMORY_LOST, word, true);
    expect_text("the command that used it has failed");
}

static void test_a_lost_word_of_a_service_is_cleared(void **state)
{
    static uint8_t rings[2][64] __attribute__((aligned(64)));

    (void)state;
    start_check();
    memory_check_add_service(&bed.check, rings[0], sizeof(rings[0]));
    memory_check_add_service(&bed.check, rings[1], sizeof(rings[1]));
    for (uint32_t i = 0; i < 2; i++) {
        uint64_t word = hal_dma_addr(rings[i]) + 56;

        bed.lost[0] = word;
        find_lost(word, true);
        assert_true(memory_check_look(&bed.check, 1000));
        assert_false(is_lost(word));
        expect_error(i + 1, HW_ERROR_MEMORY_LOST, word, true);
        expect_text("the connection that used it has ended");
    }
    /* A hart reads no such buffer. */
    bed.lost[0] = hal_dma_addr(rings[0]);
    find_lost(hal_dma_addr(rings[0]), false);
    expect_assert_failure(memory_check_look(&bed.check, 1000));
}

static void test_a_lost_word_of_the_write_buffer_is_cleared(void **state)
{
    uint64_t word = DRAM_BASE + 0x400;

    (void)state;
    start_check();
    bed.lost[0] = bed.medium_word = word;
    find_lost(word, true);
    assert_true(memory_check_look(&bed.check, 1000));
    assert_false(is_lost(word));
    expect_text("its block in the write buffer is lost");
}

static void expect_stop(uint64_t word, bool is_by_dma)
{
    new_bed(NULL);
    start_check();
    bed.lost[0] = word;
    find_lost(word, is_by_dma);
    expect_assert_failure(memory_check_look(&bed.check, 1000));
    assert_true(is_lost(word)); /* no device takes zeroes for good data */
    expect_error(1, HW_ERROR_MEMORY_LOST, word, true);
    expect_text("is lost: more than one bit is wrong");
}

static void test_the_firmware_stops_when_it_needs_the_word(void **state)
{
    (void)state;
    expect_stop(DRAM_BASE + BUFFERS - 8, true);
    expect_stop(DRAM_BASE + BUFFERS + BUFFERS_BYTES, true);
    /* Of a word that a hart has read, nobody knows what became of it. */
    expect_stop(DRAM_BASE + BUFFERS, false);
}

/* ---- What a hart reads of hosts' data. */

static void test_a_read_without_lost_words_may_go_on(void **state)
{
    static uint8_t data[64] __attribute__((aligned(64)));

    (void)state;
    start_check();
    bed.lost[0] = hal_dma_addr(data) + sizeof(data);
    assert_true(memory_check_read(&bed.check, data, sizeof(data), 1000));
    assert_int_equal(bed.errors.records.count, 0);
}

static void test_a_read_with_lost_words_fails_and_clears_them(void **state)
{
    static uint8_t data[64] __attribute__((aligned(64)));

    (void)state;
    start_check();
    bed.lost[0] = hal_dma_addr(data);
    bed.lost[1] = hal_dma_addr(data) + 56;
    /* The first word is read in part only. */
    assert_false(memory_check_read(&bed.check, data + 4, 60, 1000));
    assert_int_equal(bed.errors.records.count, 2);
    assert_false(is_lost(hal_dma_addr(data)));
    assert_false(is_lost(hal_dma_addr(data) + 56));
    assert_true(memory_check_read(&bed.check, data, sizeof(data), 1000));
}

static void test_a_word_lost_elsewhere_does_not_fail_the_read(void **state)
{
    static uint8_t data[64] __attribute__((aligned(64)));
    uint64_t word = DRAM_BASE + BUFFERS;

    (void)state;
    start_check();
    bed.lost[0] = word;
    find_lost(word, true);
    assert_true(memory_check_read(&bed.check, data, sizeof(data), 1000));
    assert_false(is_lost(word));
    expect_error(1, HW_ERROR_MEMORY_LOST, word, true);
}

/* After a read, its memory is no buffer any more. */
static void test_the_memory_of_a_read_is_forgotten(void **state)
{
    static uint8_t data[64] __attribute__((aligned(64)));

    (void)state;
    start_check();
    assert_true(memory_check_read(&bed.check, data, sizeof(data), 1000));
    bed.lost[0] = hal_dma_addr(data);
    find_lost(hal_dma_addr(data), true);
    expect_assert_failure(memory_check_look(&bed.check, 2000));
}

/* ---- The start. */

static void test_what_was_lost_before_the_reset_is_reported(void **state)
{
    (void)state;
    find_lost(DRAM_BASE + 0x20, false);
    assert_int_equal(memory_check_lost_word(1), DRAM_BASE + 0x20);
    bed.config.trap_word = DRAM_BASE + 0x40;
    start_check();
    assert_true(bed.is_armed);
    assert_int_equal(bed.errors.records.count, 2);
    assert_int_equal(bed.errors.records.error[0].address, DRAM_BASE + 0x20);
    expect_error(2, HW_ERROR_MEMORY_LOST, DRAM_BASE + 0x40, true);
    expect_text("memory: the word at 0x80000040 was lost before the reset");
}

static void test_a_word_at_which_a_hart_trapped_is_reported_once(void **state)
{
    (void)state;
    find_lost(DRAM_BASE + 0x20, false);
    bed.config.trap_word = DRAM_BASE + 0x20;
    start_check();
    expect_error(1, HW_ERROR_MEMORY_LOST, DRAM_BASE + 0x20, true);
}

static void test_the_start_waits_until_the_medium_needs_no_word(void **state)
{
    (void)state;
    bed.is_noted = false;
    find_lost(DRAM_BASE + 0x20, false);
    start_check();
    assert_int_equal(memory_check_step(&bed.check, 0), 1000);
    assert_false(bed.is_armed);
    assert_false(memory_check_look(&bed.check, 500));
    assert_int_equal(memory_check_lost_word(1), DRAM_BASE + 0x20);
    assert_int_equal(bed.errors.records.count, 0);
    bed.is_noted = true;
    assert_int_equal(memory_check_step(&bed.check, 1000), 1000 + PART_US);
    assert_true(bed.is_armed);
    expect_error(1, HW_ERROR_MEMORY_LOST, DRAM_BASE + 0x20, true);
    assert_int_equal(memory_check_lost_word(1), 0);
}

static void test_a_machine_without_ecc_has_nothing_to_do(void **state)
{
    uint8_t data[8];

    (void)state;
    bed.config.regs = 0;
    start_check();
    assert_int_equal(memory_check_step(&bed.check, HOUR_US), UINT64_MAX);
    assert_false(memory_check_look(&bed.check, 0));
    assert_true(memory_check_read(&bed.check, data, sizeof(data), 0));
    assert_int_equal(memory_check_lost_word(0), 0);
    assert_int_equal(bed.scrubs, 0);
}

static void test_only_access_faults_in_dram_name_a_word(void **state)
{
    static const struct {
        uint64_t mcause, mtval, word;
    } rows[] = {
        {1, DRAM_BASE + 0x1003, DRAM_BASE + 0x1000},
        {5, DRAM_BASE + 0x1008, DRAM_BASE + 0x1008},
        {7, DRAM_BASE + DRAM_BYTES - 1, DRAM_BASE + DRAM_BYTES - 8},
        {5, DRAM_BASE + DRAM_BYTES, 0},
        {5, DRAM_BASE - 1, 0},
        {2, DRAM_BASE + 0x1008, 0}, /* an illegal instruction */
        {4, DRAM_BASE + 0x1009, 0}, /* a misaligned load */
        {13, DRAM_BASE + 0x1008, 0},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        assert_int_equal(memory_check_trap_word(rows[i].mcause, rows[i].mtval,
                                                DRAM_BASE, DRAM_BYTES),
                         rows[i].word);
    }
}

TEST_FIXTURE(new_bed, NULL)
