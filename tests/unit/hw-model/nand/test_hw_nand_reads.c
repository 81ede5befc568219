/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads of one die that are in progress at the same time, because operations
 * take no time: hw_nand_reads.c.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "tests/test_fixture.h"
#include "tests/unit/hw-model/nand/nand_world.h"

enum {
    BAD_UNIT = 99,    /* There is no such unit. */
    QUEUE2_LOG2 = 10, /* entries of the rings of queue 2 */
    QUEUE2_CMD = 0x10000,
    QUEUE2_CQ = 0x20000,
    QUEUE2_PAGE = 0x30000,
    QUEUE2_LIST = 0x31000,
};

static int setup_world(void **state, bool is_realtime)
{
    *state = w_new("slc", is_realtime, W_CMD_LOG2);
    return 0;
}

static int setup(void **state)
{
    return setup_world(state, false);
}

static int setup_realtime(void **state)
{
    return setup_world(state, true);
}

static int teardown(void **state)
{
    w_stop(*state);
    w_free(*state);
    return 0;
}

TEST_FIXTURE(setup, teardown)

/* Put a command for block 0 of plane 0 of die 0, with one entry for `unit`
 * unless it is an erase. */
static void put_command(struct nand_world *w, uint8_t opcode, uint8_t unit,
                        uint64_t cookie)
{
    uint32_t list = W_LIST + (uint32_t)cookie * NAND_ENTRY_LEN;
    uint8_t *entry = w->dram + list;
    uint8_t command[NAND_CMD_LEN] = {
        [NAND_CMD_OPCODE] = opcode, [NAND_CMD_PLANES] = 1};

    memset(entry, 0, NAND_ENTRY_LEN);
    put_le64(entry + NAND_ENTRY_DATA,
             TEST_DRAM_BASE + W_BUF + cookie * NAND_DATA_LEN);
    put_le16(entry + NAND_ENTRY_LENGTH, NAND_DATA_LEN);
    entry[NAND_ENTRY_UNIT] = unit;
    command[NAND_CMD_ENTRIES] = opcode != NAND_CMD_ERASE;
    put_le64(command + NAND_CMD_COOKIE, cookie);
    if (opcode != NAND_CMD_ERASE) {
        put_le64(command + NAND_CMD_LIST, TEST_DRAM_BASE + list);
    }
    w_put(w, command);
}

static void kick_queue(struct nand_world *w)
{
    w_write(w, A_QUEUE_KICK, 1);
    w_run(w);
}

/* Erase the block and program its first wordline, which has one unit. */
static void program_first_wordline(struct nand_world *w)
{
    put_command(w, NAND_CMD_ERASE, 0, 0);
    put_command(w, NAND_CMD_PROGRAM, 0, 1);
    memset(w->dram + W_BUF + NAND_DATA_LEN, 0x5a, NAND_DATA_LEN);
    kick_queue(w);
    do {
        w_settle(w);
    } while (w_next_deadline(w));
    assert_int_equal(w_take(w, NULL), NAND_CQE_OK);
    assert_int_equal(w_take(w, NULL), NAND_CQE_OK);
}

static void check_completion(struct nand_world *w, uint64_t cookie,
                             enum nand_cqe_status status)
{
    uint64_t found = UINT64_MAX;

    assert_int_equal(w_take(w, &found), status);
    assert_int_equal(found, cookie);
    if (status == NAND_CQE_OK) {
        const uint8_t *data = w->dram + W_BUF + cookie * NAND_DATA_LEN;

        for (size_t i = 0; i < NAND_DATA_LEN; i++) {
            assert_int_equal(data[i], 0x5a);
        }
    }
}

static void test_hw_nand_reads_are_in_progress_together_and_end_in_order(
    void **state)
{
    struct nand_world *w = *state;

    program_first_wordline(w);
    for (uint64_t i = 2; i < 5; i++) {
        put_command(w, NAND_CMD_READ, 0, i);
    }
    kick_queue(w);
    assert_int_equal(w->ram.queue.count, 3);
    assert_true(nand_ram_step(&w->ram, 2));
    assert_int_equal(w_take(w, NULL), 0xff);
    assert_true(nand_ram_step(&w->ram, 0));
    check_completion(w, 2, NAND_CQE_OK);
    assert_int_equal(w_take(w, NULL), 0xff);
    assert_true(nand_ram_step(&w->ram, 0));
    check_completion(w, 3, NAND_CQE_OK);
    check_completion(w, 4, NAND_CQE_OK);
    assert_int_equal(w->nand.regs.counters[NAND_COUNT_UNITS_READ], 3);
}

static void test_hw_nand_an_erase_waits_for_the_reads_before_it(void **state)
{
    struct nand_world *w = *state;

    program_first_wordline(w);
    put_command(w, NAND_CMD_READ, 0, 2);
    put_command(w, NAND_CMD_READ, 0, 3);
    put_command(w, NAND_CMD_ERASE, 0, 4);
    put_command(w, NAND_CMD_READ, 0, 5);
    kick_queue(w);
    assert_int_equal(w->ram.queue.count, 2);
    assert_true(nand_ram_step(&w->ram, 1));
    assert_int_equal(w->ram.queue.count, 1); /* the first read, no erase */
    w_settle(w);
    check_completion(w, 2, NAND_CQE_OK);
    check_completion(w, 3, NAND_CQE_OK);
    assert_int_equal(w_take(w, NULL), NAND_CQE_OK);
    check_completion(w, 5, NAND_CQE_ERASED);
}

static void test_hw_nand_a_refused_read_keeps_its_place_among_reads(
    void **state)
{
    struct nand_world *w = *state;

    program_first_wordline(w);
    put_command(w, NAND_CMD_READ, 0, 2);
    put_command(w, NAND_CMD_READ, BAD_UNIT, 3);
    put_command(w, NAND_CMD_READ, 0, 4);
    kick_queue(w);
    assert_int_equal(w->ram.queue.count, 2);
    assert_true(nand_ram_step(&w->ram, 1));
    assert_int_equal(w_take(w, NULL), 0xff);
    assert_true(nand_ram_step(&w->ram, 0));
    check_completion(w, 2, NAND_CQE_OK);
    check_completion(w, 3, NAND_CQE_BAD_ADDRESS);
    check_completion(w, 4, NAND_CQE_OK);
}

static void test_hw_nand_reads_whose_storage_fails_end_alone(void **state)
{
    struct nand_world *w = *state;

    program_first_wordline(w);
    put_command(w, NAND_CMD_READ, 0, 2);
    put_command(w, NAND_CMD_READ, 0, 3);
    kick_queue(w);
    w->ram.fail_reads = 5;
    assert_true(nand_ram_step(&w->ram, 0));
    w->ram.fail_reads = 0;
    w_settle(w);
    check_completion(w, 2, NAND_CQE_STORAGE);
    check_completion(w, 3, NAND_CQE_OK);
}

static void test_hw_nand_a_reset_waits_for_all_reads(void **state)
{
    struct nand_world *w = *state;

    program_first_wordline(w);
    put_command(w, NAND_CMD_READ, 0, 2);
    put_command(w, NAND_CMD_READ, 0, 3);
    kick_queue(w);
    w_write(w, A_NAND_CTRL, 1u << 31);
    assert_true(nand_ram_step(&w->ram, 1));
    assert_true(hw_nand_has_dma(&w->nand));
    assert_true(nand_ram_step(&w->ram, 0));
    assert_false(hw_nand_has_dma(&w->nand));
    assert_int_equal(w_read(w, A_NAND_CTRL), 0);
}

WITH_FIXTURE(setup_realtime, teardown)
static void test_hw_nand_reads_that_take_time_are_not_in_progress_together(
    void **state)
{
    struct nand_world *w = *state;

    program_first_wordline(w);
    put_command(w, NAND_CMD_READ, 0, 2);
    put_command(w, NAND_CMD_READ, 0, 3);
    kick_queue(w);
    (void)w_next_deadline(w); /* The command has been transferred. */
    assert_int_equal(w->ram.queue.count, 1);
    do {
        w_settle(w);
    } while (w_next_deadline(w));
    check_completion(w, 2, NAND_CQE_OK);
    check_completion(w, 3, NAND_CQE_OK);
}

static void put_on_queue_2(struct nand_world *w, unsigned int reads,
                           uint16_t entries)
{
    const uint32_t regs = 2 * QUEUE_STRIDE;

    w_write(w, A_QUEUE_PAGE_LO + regs, (uint32_t)TEST_DRAM_BASE + QUEUE2_PAGE);
    w_write(w, A_QUEUE_CMD_LO + regs, (uint32_t)TEST_DRAM_BASE + QUEUE2_CMD);
    w_write(w, A_QUEUE_CQ_LO + regs, (uint32_t)TEST_DRAM_BASE + QUEUE2_CQ);
    w_write(w, A_QUEUE_SIZES + regs, QUEUE2_LOG2 | QUEUE2_LOG2 << 8);
    w_write(w, A_QUEUE_ENABLE + regs, 1);
    for (unsigned int i = 0; i < reads; i++) {
        uint8_t *command = w->dram + QUEUE2_CMD + (size_t)i * NAND_CMD_LEN;

        command[NAND_CMD_OPCODE] = NAND_CMD_READ;
        command[NAND_CMD_PLANES] = 1;
        command[NAND_CMD_CHANNEL] = i % 2;
        put_le16(command + NAND_CMD_ENTRIES, entries);
        put_le64(command + NAND_CMD_LIST, TEST_DRAM_BASE + QUEUE2_LIST);
    }
    put_le32(w->dram + QUEUE2_PAGE + QUEUE_PAGE_CMD_PI, reads);
    w_write(w, A_QUEUE_KICK + regs, 1);
}

/* Reads of one entry: each die has as many as it may have.  Reads of 64
 * entries: their entries are counted, too. */
static void test_hw_nand_the_reads_in_progress_are_bounded(void **state)
{
    enum { POSTED = 100, LONG = 64 };
    struct nand_world *w = *state;
    const uint64_t *read = &w->nand.regs.counters[NAND_COUNT_UNITS_READ];
    uint64_t first;

    program_first_wordline(w);
    memset(w->dram + QUEUE2_CMD, 0, W_DRAM_BYTES - QUEUE2_CMD);
    put_on_queue_2(w, POSTED, 1);
    w_run(w);
    assert_int_equal(w->nand.dies[0].num_reads, HW_NAND_DIE_READS);
    w_settle(w);
    assert_int_equal(*read, POSTED);

    first = *read;
    put_on_queue_2(w, 0, LONG);
    w_write(w, A_QUEUE_ENABLE + 2 * QUEUE_STRIDE, 0);
    memset(w->dram + QUEUE2_PAGE, 0, NAND_CMD_LEN);
    put_on_queue_2(w, POSTED, LONG);
    w_run(w);
    assert_in_range(w->nand.dies[0].num_reads, 1,
                    1 + HW_NAND_MORE_ENTRIES / LONG);
    assert_true(w->nand.more_entries <= HW_NAND_MORE_ENTRIES);
    w_settle(w);
    assert_int_equal(*read - first, POSTED * LONG);
}
