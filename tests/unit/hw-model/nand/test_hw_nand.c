/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The NAND controller's core: registers, rings, interrupts, and what its driver
 * never does.  Data, order and times: tests/native/test_nand.c.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "tests/test_fixture.h"
#include "tests/unit/hw-model/nand/nand_world.h"

enum { CQ_LOG2 = 1 };

static int setup(void **state)
{
    *state = w_new("slc", false, CQ_LOG2);
    return 0;
}

static int setup_realtime(void **state)
{
    *state = w_new("slc", true, CQ_LOG2);
    return 0;
}

static int teardown(void **state)
{
    w_stop(*state);
    w_free(*state);
    return 0;
}

TEST_FIXTURE(setup, teardown)

static void put_simple(struct nand_world *w, uint8_t opcode, uint64_t cookie)
{
    uint8_t command[NAND_CMD_LEN] = {0};

    command[NAND_CMD_OPCODE] = opcode;
    command[NAND_CMD_PLANES] = opcode == NAND_CMD_NOP ? 0 : 1;
    put_le64(command + NAND_CMD_COOKIE, cookie);
    w_put(w, command);
}

static void test_hw_nand_a_full_completion_ring_holds_commands_back(
    void **state)
{
    struct nand_world *w = *state;

    for (uint64_t i = 0; i < 10; i++) {
        put_simple(w, i % 2 ? NAND_CMD_ERASE : NAND_CMD_NOP, i);
    }
    w_write(w, A_QUEUE_KICK, 1);
    for (uint64_t i = 0; i < 10; i += 2) {
        uint64_t first = 0, second = 0;

        w_settle(w);
        assert_int_equal(w->nand.regs.queues[0].cmd_ci, i + 2);
        assert_int_equal(get_le32(w->dram + W_PAGE + QUEUE_PAGE_CMD_CI), i + 2);
        assert_int_equal(get_le32(w->dram + W_PAGE + QUEUE_PAGE_ASLEEP), 1);
        assert_int_equal(w_take(w, &first), NAND_CQE_OK);
        assert_int_equal(w_take(w, &second), NAND_CQE_OK);
        assert_int_equal(first + second, 2 * i + 1);
        assert_int_equal(w_take(w, NULL), 0xff);
        w_write(w, A_QUEUE_KICK, 1);
    }
}

static void test_hw_nand_only_an_armed_queue_interrupts(void **state)
{
    struct nand_world *w = *state;

    w_write(w, A_NAND_IRQ_ENABLE, UINT32_MAX);
    assert_int_equal(w_read(w, A_NAND_IRQ_ENABLE), 0xf);
    put_simple(w, NAND_CMD_NOP, 1);
    w_write(w, A_QUEUE_KICK, 1);
    w_settle(w);
    assert_false(w->env.irq);
    put_le32(w->dram + W_PAGE + QUEUE_PAGE_ARMED, 1);
    put_simple(w, NAND_CMD_NOP, 2);
    w_write(w, A_QUEUE_KICK, 1);
    w_settle(w);
    assert_true(w->env.irq);
    assert_int_equal(get_le32(w->dram + W_PAGE + QUEUE_PAGE_ARMED), 0);
    assert_int_equal(w_read(w, A_NAND_IRQ_STATUS), 1);
    w_write(w, A_NAND_IRQ_STATUS, 1);
    assert_false(w->env.irq);
}

static void test_hw_nand_refuses_rings_outside_of_dram(void **state)
{
    static const struct {
        uint32_t offset;
        uint32_t value;
    } bad[] = {
        {A_QUEUE_PAGE_LO, 0x80000020},
        {A_QUEUE_PAGE_LO, 0x7fffffc0},
        {A_QUEUE_CMD_LO, (uint32_t)TEST_DRAM_BASE + W_DRAM_BYTES - 64},
        {A_QUEUE_CQ_HI, 1},
        {A_QUEUE_SIZES, 0 | 1 << 8},
        {A_QUEUE_SIZES, 4 | 13 << 8},
    };
    struct nand_world *w = *state;

    for (unsigned int i = 0; i < ARRAY_LEN(bad); i++) {
        w_enable_queue(w);
        w_write(w, A_QUEUE_ENABLE, 0);
        w_write(w, bad[i].offset, bad[i].value);
        w_write(w, A_QUEUE_ENABLE, 1);
        assert_int_equal(w_read(w, A_QUEUE_ENABLE), 0);
    }
    w_enable_queue(w);
}

static void test_hw_nand_registers_read_as_documented(void **state)
{
    struct nand_world *w = *state;
    uint32_t value = 1;

    assert_int_equal(w_read(w, A_NAND_ID), NAND_ID_VALUE);
    assert_int_equal(w_read(w, A_NAND_LIMITS), 4 | 64 << 8 | 512 << 16);
    assert_int_equal(w_read(w, A_NAND_CTRL), 0);
    assert_int_equal(w_read(w, A_NAND_GEOMETRY1), 2 | 2 << 16);
    assert_int_equal(w_read(w, A_QUEUE_CMD_LO + 3 * QUEUE_STRIDE), 0);
    assert_int_equal(w_read(w, A_NAND_PROGRAM_TIME), 0);
    assert_int_equal(w_read(w, A_NAND_OTHER_TIMES), 0);
    assert_false(hw_nand_read(&w->nand, 0x50, &value));
    assert_int_equal(value, 0);
    assert_false(hw_nand_write(&w->nand, A_NAND_ID, 1));
    assert_false(
        hw_nand_read(&w->nand, NAND_COUNTER_BASE + 8 * NAND_COUNTERS, &value));
}

static void test_hw_nand_without_an_array_refuses_every_command(void **state)
{
    static struct hw_nand nand;
    struct nand_world *w = *state;
    struct hw_nand_config config = {
        .env = test_env_init(&w->env, w->dram, W_DRAM_BYTES)};
    uint32_t value = 1;

    w_settle(w);
    hw_nand_init(&nand, &config);
    assert_true(hw_nand_read(&nand, A_NAND_GEOMETRY0, &value));
    assert_int_equal(value, 0);
    assert_true(hw_nand_read(&nand, A_NAND_ECC, &value));
    assert_int_equal(value, 0);
    memcpy(nand.regs.queues, w->nand.regs.queues, sizeof(nand.regs.queues));
    assert_true(hw_nand_loaded(&nand));
    for (uint8_t opcode = 0; opcode < 2; opcode++) {
        put_simple(w, opcode ? NAND_CMD_ERASE : NAND_CMD_MARKS, 1);
    }
    hw_nand_run(&nand);
    assert_int_equal(w_take(w, NULL), NAND_CQE_BAD_ADDRESS);
    assert_int_equal(w_take(w, NULL), NAND_CQE_BAD_ADDRESS);
    hw_nand_quiesce(&nand);
    assert_true(hw_nand_is_quiet(&nand));
    /* The real controller's ring goes on where this one's has ended. */
    w_enable_queue(w);
}

WITH_FIXTURE(setup_realtime, teardown)
static void test_hw_nand_a_disabled_queue_gets_no_completions(void **state)
{
    struct nand_world *w = *state;

    put_simple(w, NAND_CMD_ERASE, 1);
    w_write(w, A_QUEUE_KICK, 1);
    w_settle(w);
    assert_int_equal(w->nand.active_ops, 1);
    w_write(w, A_QUEUE_ENABLE, 0);
    w_enable_queue(w);
    while (w_next_deadline(w)) {
        w_settle(w);
    }
    assert_int_equal(w->nand.active_ops, 0);
    assert_int_equal(w_take(w, NULL), 0xff);
}

WITH_FIXTURE(setup_realtime, teardown)
static void test_hw_nand_reset_reads_one_while_the_storage_is_used(void **state)
{
    struct nand_world *w = *state;

    put_simple(w, NAND_CMD_ERASE, 1);
    w_write(w, A_QUEUE_KICK, 1);
    w_run(w);
    (void)w_next_deadline(w); /* the command has been transferred */
    assert_int_not_equal(w->ram.queue.count, 0);
    w_write(w, A_NAND_CTRL, 1u << 31);
    assert_int_equal(w_read(w, A_NAND_CTRL), 1u << 31);
    w_enable_queue(w);
    put_simple(w, NAND_CMD_NOP, 2);
    w_write(w, A_QUEUE_KICK, 1);
    w_run(w);
    assert_int_equal(w_take(w, NULL), 0xff); /* not before the reset's end */
    w_settle(w);
    assert_int_equal(w_read(w, A_NAND_CTRL), 0);
    assert_int_equal(w_take(w, NULL), NAND_CQE_OK);
    assert_int_equal(w->nand.regs.counters[NAND_COUNT_BLOCKS_ERASED], 1);
}

WITH_FIXTURE(setup_realtime, teardown)
static void test_hw_nand_reset_ends_an_erase_that_a_read_has_suspended(
    void **state)
{
    struct nand_world *w = *state;
    uint8_t read[NAND_CMD_LEN] = {[NAND_CMD_OPCODE] = NAND_CMD_READ,
                                  [NAND_CMD_FLAGS] = NAND_CMD_URGENT,
                                  [NAND_CMD_PLANES] = 1,
                                  [NAND_CMD_ENTRIES] = 1,
                                  [NAND_CMD_BLOCK] = 1};

    put_simple(w, NAND_CMD_ERASE, 1);
    w_write(w, A_QUEUE_KICK, 1);
    w_run(w);
    (void)w_next_deadline(w);
    w_settle(w);
    assert_int_equal(w->nand.registers[0].state, HW_DIE_BUSY);
    put_le64(read + NAND_CMD_LIST, TEST_DRAM_BASE + W_LIST);
    w_put(w, read);
    w_write(w, A_QUEUE_KICK, 1);
    w_run(w);
    assert_int_equal(w->nand.registers[0].state, HW_DIE_RECEIVES);
    assert_int_not_equal(w->nand.dies[0].suspended, HW_NAND_NONE);
    w_write(w, A_NAND_CTRL, 1u << 31);
    w_settle(w);
    assert_int_equal(w_read(w, A_NAND_CTRL), 0);
    assert_int_equal(w->nand.regs.counters[NAND_COUNT_BLOCKS_ERASED], 1);
}

/*
 * Queue 2 with rings of 1024 entries, so that more commands are posted than
 * the controller has operations.
 */
WITH_FIXTURE(setup_realtime, teardown)
static void test_hw_nand_takes_the_rest_when_its_operations_are_free_again(
    void **state)
{
    enum { POSTED = 700, CMD = 0x10000, CQ = 0x20000, PAGE = 0x30000 };
    const uint32_t regs = 2 * QUEUE_STRIDE;
    struct nand_world *w = *state;
    unsigned int completed = 0;

    w_write(w, A_QUEUE_PAGE_LO + regs, (uint32_t)TEST_DRAM_BASE + PAGE);
    w_write(w, A_QUEUE_CMD_LO + regs, (uint32_t)TEST_DRAM_BASE + CMD);
    w_write(w, A_QUEUE_CQ_LO + regs, (uint32_t)TEST_DRAM_BASE + CQ);
    w_write(w, A_QUEUE_SIZES + regs, 10 | 10 << 8);
    w_write(w, A_QUEUE_ENABLE + regs, 1);
    assert_int_equal(w_read(w, A_QUEUE_ENABLE + regs), 1);
    for (size_t i = 0; i < POSTED; i++) {
        uint8_t *command = w->dram + CMD + i * NAND_CMD_LEN;

        command[NAND_CMD_OPCODE] = NAND_CMD_ERASE;
        command[NAND_CMD_PLANES] = 1;
        command[NAND_CMD_CHANNEL] = i % 2;
        put_le64(command + NAND_CMD_COOKIE, i);
    }
    put_le32(w->dram + PAGE + QUEUE_PAGE_CMD_PI, POSTED);
    w_write(w, A_QUEUE_KICK + regs, 1);
    w_settle(w);
    assert_int_equal(w->nand.active_ops, HW_NAND_OPS);
    assert_int_equal(w->nand.regs.queues[2].cmd_ci, HW_NAND_OPS);
    do {
        w_settle(w);
    } while (w_next_deadline(w));
    for (size_t i = 0; i < POSTED; i++) {
        const uint8_t *cqe = w->dram + CQ + i * QUEUE_CQE_LEN;

        completed += cqe[QUEUE_CQE_FLAGS] == QUEUE_CQE_PHASE &&
                     cqe[QUEUE_CQE_STATUS] == NAND_CQE_OK;
    }
    assert_int_equal(completed, POSTED);
    assert_int_equal(w->nand.regs.counters[NAND_COUNT_BLOCKS_ERASED], POSTED);
}

/* Add an entry that reads half of the first unit. */
static void put_half(struct nand_world *w, unsigned int i, uint64_t meta)
{
    uint8_t *entry = w->dram + W_LIST + i * (size_t)NAND_ENTRY_LEN;

    memset(entry, 0, NAND_ENTRY_LEN);
    put_le64(entry + NAND_ENTRY_DATA,
             TEST_DRAM_BASE + W_BUF + i * NAND_DATA_LEN);
    put_le64(entry + NAND_ENTRY_META, meta);
    put_le16(entry + NAND_ENTRY_OFFSET, (uint16_t)(i * NAND_DATA_LEN / 2));
    put_le16(entry + NAND_ENTRY_LENGTH, NAND_DATA_LEN / 2);
    entry[NAND_ENTRY_FLAGS] = i == 0 ? NAND_ENTRY_MORE : 0;
}

static void test_hw_nand_metadata_of_two_entries_may_overlap(void **state)
{
    struct nand_world *w = *state;
    const uint64_t meta = TEST_DRAM_BASE + W_BUF + 4 * NAND_DATA_LEN;
    uint8_t command[NAND_CMD_LEN] = {[NAND_CMD_OPCODE] = NAND_CMD_PROGRAM,
                                     [NAND_CMD_PLANES] = 1,
                                     [NAND_CMD_ENTRIES] = 1};

    put_simple(w, NAND_CMD_ERASE, 1);
    put_half(w, 0, 0);
    put_le16(w->dram + W_LIST + NAND_ENTRY_LENGTH, NAND_DATA_LEN);
    w->dram[W_LIST + NAND_ENTRY_FLAGS] = 0;
    put_le64(command + NAND_CMD_LIST, TEST_DRAM_BASE + W_LIST);
    w_put(w, command);
    w_write(w, A_QUEUE_KICK, 1);
    w_settle(w);
    assert_int_equal(w_take(w, NULL), NAND_CQE_OK);
    assert_int_equal(w_take(w, NULL), NAND_CQE_OK);

    put_half(w, 0, meta);
    put_half(w, 1, meta + 8);
    command[NAND_CMD_OPCODE] = NAND_CMD_READ;
    command[NAND_CMD_ENTRIES] = 2;
    put_le32(w->dram + W_PAGE + QUEUE_PAGE_CQ_CI, w->cq_ci);
    w_put(w, command);
    w_write(w, A_QUEUE_KICK, 1);
    w_settle(w);
    assert_int_equal(w_take(w, NULL), NAND_CQE_OK);
    for (size_t i = 0; i < NAND_META_LEN + 8; i++) {
        assert_int_equal(w->dram[meta - TEST_DRAM_BASE + i], 0xff);
    }
}

static void test_hw_nand_notes_that_the_storage_is_not_up_to_date(void **state)
{
    struct nand_world *w = *state;

    put_simple(w, NAND_CMD_ERASE, 1);
    w_write(w, A_QUEUE_KICK, 1);
    w_settle(w);
    w->ram.fail_writes = 28;
    w_stop(w);
    assert_true(w->nand.sync_failed);
    w->ram.fail_writes = 0;
    hw_nand_resume(&w->nand);
    w_stop(w);
    assert_false(w->nand.sync_failed);
}

/* ---- Moves. */

enum { MOVES = W_LIST, MOVE_MEMORY = W_LIST + 0x2000 };

static void put_move(struct nand_world *w, uint32_t index, uint8_t opcode,
                     uint64_t to, uint64_t from, uint32_t len)
{
    uint8_t *move =
        w->dram + MOVES + NAND_MOVE_HEADER_LEN + (size_t)index * NAND_MOVE_LEN;

    memset(move, 0, NAND_MOVE_LEN);
    put_le64(move + NAND_MOVE_SOURCE, from);
    put_le64(move + NAND_MOVE_TARGET, to);
    put_le32(move + NAND_MOVE_LENGTH, len);
    move[NAND_MOVE_OPCODE] = opcode;
}

/* @return how many moves were done */
static uint32_t run_moves(struct nand_world *w, uint32_t count)
{
    put_le32(w->dram + MOVES + NAND_MOVE_COUNT, count);
    put_le32(w->dram + MOVES + NAND_MOVE_DONE, 0);
    w_write(w, A_NAND_MOVE,
            (uint32_t)((TEST_DRAM_BASE + MOVES) / NAND_MOVE_ALIGN));
    return get_le32(w->dram + MOVES + NAND_MOVE_DONE);
}

static void test_hw_nand_moves_copy_and_add_up_memory_in_order(void **state)
{
    struct nand_world *w = w_new("slc", false, 4);
    uint64_t at = TEST_DRAM_BASE + MOVE_MEMORY;
    uint8_t *bytes = w->dram + MOVE_MEMORY;

    (void)state;
    for (unsigned int i = 0; i < 4096; i++) {
        bytes[i] = (uint8_t)(i * 7 + i / 256);
        bytes[4096 + i] = (uint8_t)(i * 13 + 5);
    }
    memset(bytes + 8192, 0xa5, 4104);
    put_move(w, 0, NAND_MOVE_COPY, at + 8192, at, 4096);
    put_move(w, 1, NAND_MOVE_XOR, at + 8192, at + 4096, 4096);
    put_move(w, 2, NAND_MOVE_XOR, at + 8200, at + 8, 72);
    put_move(w, 3, NAND_MOVE_COPY, at + 8192, at + 8200, 8);
    assert_int_equal(run_moves(w, 4), 4);
    for (unsigned int i = 0; i < 4096; i++) {
        unsigned int from = i < 8 ? i + 8 : i;
        uint8_t want = bytes[from] ^ bytes[4096 + from];

        if (from >= 8 && from < 80) {
            want ^= bytes[from];
        }
        assert_int_equal(bytes[8192 + i], want);
    }
    for (unsigned int i = 4096; i < 4104; i++) {
        assert_int_equal(bytes[8192 + i], 0xa5);
    }
    w_free(w);
}

static void test_hw_nand_moves_end_at_one_of_a_bad_form(void **state)
{
    static const struct {
        uint64_t to, from; /* from the beginning of the memory */
        uint32_t len;
        uint8_t opcode;
    } bad[] = {
        {4096, 0, 0, NAND_MOVE_COPY},    {4096, 0, 4104, NAND_MOVE_COPY},
        {4096, 0, 12, NAND_MOVE_XOR},    {4100, 0, 8, NAND_MOVE_XOR},
        {4096, 4, 8, NAND_MOVE_XOR},     {4096, 0, 8, NAND_MOVE_ADD_ROW + 1},
        {1u << 30, 0, 8, NAND_MOVE_XOR}, {4096, 1u << 30, 8, NAND_MOVE_COPY},
    };
    uint64_t at = TEST_DRAM_BASE + MOVE_MEMORY;

    (void)state;
    for (unsigned int i = 0; i < ARRAY_LEN(bad); i++) {
        struct nand_world *w = w_new("slc", false, 4);
        uint8_t *bytes = w->dram + MOVE_MEMORY;

        memset(bytes, 0x11, 4096);
        put_move(w, 0, NAND_MOVE_COPY, at + 8192, at, 8);
        put_move(w, 1, bad[i].opcode, at + bad[i].to, at + bad[i].from,
                 bad[i].len);
        put_move(w, 2, NAND_MOVE_COPY, at + 8200, at, 8);
        assert_int_equal(run_moves(w, 3), 1);
        assert_int_equal(get_le32(w->dram + MOVES + NAND_MOVE_STATUS),
                         NAND_MOVE_REFUSED);
        assert_int_equal(bytes[8192], 0x11);
        assert_int_equal(bytes[4096], 0);
        assert_int_equal(bytes[8200], 0);
        w_free(w);
    }
}

/* A copy replaces a lost word of its target; other moves need the word. */
static void test_hw_nand_moves_and_lost_words(void **state)
{
    struct nand_world *w = w_new("slc", false, 4);
    uint64_t at = TEST_DRAM_BASE + MOVE_MEMORY;

    (void)state;
    w->dram[MOVE_MEMORY + 8] = 1;
    put_move(w, 0, NAND_MOVE_COPY, at + 1024, at, 512);
    w->env.lost = at + 1032;
    assert_int_equal(run_moves(w, 1), 1);
    assert_int_equal(w->env.lost, 0);
    assert_int_equal(w->dram[MOVE_MEMORY + 1032], 1);
    w->env.lost = at + 1032;
    put_move(w, 0, NAND_MOVE_XOR, at + 1024, at, 512);
    assert_int_equal(run_moves(w, 1), 0);
    put_move(w, 0, NAND_MOVE_COPY, at + 1036, at, 512); /* half of the word */
    assert_int_equal(run_moves(w, 1), 0);
    w->dram[MOVE_MEMORY + 8] = 2;
    put_move(w, 0, NAND_MOVE_COPY, at, at + 1024, 512);
    assert_int_equal(run_moves(w, 1), 0);
    assert_int_equal(w->dram[MOVE_MEMORY + 8], 2);
    assert_int_equal(w->env.lost, at + 1032);
    w_free(w);
}

/* ---- Rows: a list, units of random bytes, and their sum. */

enum {
    ROW_UNITS = 3,
    ROW_LIST = W_LIST + 0x3000,
    ROW_META = ROW_LIST + ROW_UNITS * NAND_ENTRY_LEN,
    ROW_DATA = W_BUF,
    ROW_SUM = W_BUF + 0x8000,
    ROW_UNIT_LEN = NAND_DATA_LEN + NAND_META_LEN + NAND_SYSTEM_LEN,
    ROW_SUM_LEN = ROW_UNITS * ROW_UNIT_LEN,
};

static uint8_t row_contents[ROW_SUM_LEN]; /* in the order of the sum */

static void put_row_entry(struct nand_world *w, unsigned int unit,
                          uint64_t data, uint64_t meta)
{
    uint8_t *entry = w->dram + ROW_LIST + (size_t)unit * NAND_ENTRY_LEN;

    put_le64(entry + NAND_ENTRY_DATA, TEST_DRAM_BASE + data);
    put_le64(entry + NAND_ENTRY_META, TEST_DRAM_BASE + meta);
}

static struct nand_world *new_row(void)
{
    struct nand_world *w = w_new("slc", false, 4);
    uint8_t *data = row_contents;
    uint8_t *meta = data + (size_t)ROW_UNITS * NAND_DATA_LEN;
    uint8_t *system = meta + (size_t)ROW_UNITS * NAND_META_LEN;

    for (uint32_t i = 0; i < ROW_SUM_LEN; i++) {
        row_contents[i] = (uint8_t)(i * 7 + i / 256 * 29 + i / 4096);
        w->dram[ROW_SUM + i] = (uint8_t)(i * 13 + 5);
    }
    memset(w->dram + ROW_SUM + ROW_SUM_LEN, 0x3c, 64);
    for (unsigned int i = 0; i < ROW_UNITS; i++) {
        /* The units are in memory in another order. */
        uint32_t at = (ROW_UNITS - 1 - i) * NAND_DATA_LEN + 8;

        put_row_entry(w, i, ROW_DATA + at, ROW_META + i * NAND_META_LEN);
        memcpy(w->dram + ROW_DATA + at, data + (size_t)i * NAND_DATA_LEN,
               NAND_DATA_LEN);
        memcpy(w->dram + ROW_LIST + (size_t)i * NAND_ENTRY_LEN +
                   NAND_ENTRY_SYSTEM,
               system + (size_t)i * NAND_SYSTEM_LEN, NAND_SYSTEM_LEN);
    }
    memcpy(w->dram + ROW_META, meta, (size_t)ROW_UNITS * NAND_META_LEN);
    return w;
}

/* Do an ADD_ROW between two other moves. @return how many moves were done */
static uint32_t add_row(struct nand_world *w, uint64_t to, uint64_t list,
                        uint32_t units, uint8_t flags)
{
    uint64_t at = TEST_DRAM_BASE + MOVE_MEMORY;

    put_move(w, 0, NAND_MOVE_COPY, at, at, 8);
    put_move(w, 1, NAND_MOVE_ADD_ROW, TEST_DRAM_BASE + to,
             TEST_DRAM_BASE + list, units);
    w->dram[MOVES + NAND_MOVE_HEADER_LEN + NAND_MOVE_LEN + NAND_MOVE_FLAGS] =
        flags;
    put_move(w, 2, NAND_MOVE_COPY, at, at, 8);
    return run_moves(w, 3);
}

static void expect_sum(const struct nand_world *w, bool has_units,
                       bool has_before)
{
    for (uint32_t i = 0; i < ROW_SUM_LEN; i++) {
        uint8_t want = has_units ? row_contents[i] : 0;

        want ^= has_before ? (uint8_t)(i * 13 + 5) : 0;
        assert_int_equal(w->dram[ROW_SUM + i], want);
    }
    for (unsigned int i = 0; i < 64; i++) {
        assert_int_equal(w->dram[ROW_SUM + ROW_SUM_LEN + i], 0x3c);
    }
}

static void test_hw_nand_rows_are_added_to_a_sum(void **state)
{
    struct nand_world *w = new_row();

    (void)state;
    assert_int_equal(add_row(w, ROW_SUM, ROW_LIST, ROW_UNITS, 0), 3);
    expect_sum(w, true, true);
    assert_int_equal(add_row(w, ROW_SUM, ROW_LIST, ROW_UNITS, 0), 3);
    expect_sum(w, false, true);
    assert_int_equal(add_row(w, ROW_SUM, ROW_LIST, ROW_UNITS, NAND_MOVE_BEGIN),
                     3);
    expect_sum(w, true, false);
    w_free(w);
}

/* @return the bytes that pass the memory for the data of a move of a row */
static uint64_t row_bytes(struct nand_world *w, uint8_t flags)
{
    uint64_t moves = NAND_MOVE_HEADER_LEN + 3 * NAND_MOVE_LEN;
    uint64_t copies = 2 * 2 * 8, list = (uint64_t)ROW_UNITS * NAND_ENTRY_LEN;

    w->env.dma_bytes = 0;
    assert_int_equal(add_row(w, ROW_SUM, ROW_LIST, ROW_UNITS, flags), 3);
    return w->env.dma_bytes - moves - copies - list;
}

/* The system bytes are in the list. */
static void test_hw_nand_a_sum_is_read_and_written(void **state)
{
    const uint64_t units =
        (uint64_t)ROW_UNITS * (NAND_DATA_LEN + NAND_META_LEN);
    const uint64_t at = TEST_DRAM_BASE + MOVE_MEMORY;
    struct nand_world *w = new_row();

    (void)state;
    assert_int_equal(row_bytes(w, NAND_MOVE_BEGIN), units + ROW_SUM_LEN);
    assert_int_equal(row_bytes(w, 0), units + 2 * ROW_SUM_LEN);
    put_move(w, 0, NAND_MOVE_XOR, at, at + 4096, 512);
    w->env.dma_bytes = 0;
    assert_int_equal(run_moves(w, 1), 1);
    assert_int_equal(w->env.dma_bytes,
                     NAND_MOVE_HEADER_LEN + NAND_MOVE_LEN + 3 * 512);
    w_free(w);
}

/* A row that is refused has changed nothing, even if its last unit is bad. */
static void test_hw_nand_rows_of_a_bad_form_are_refused(void **state)
{
    static const struct {
        uint64_t to, list;
        uint32_t units;
        uint8_t flags;
    } bad[] = {
        {ROW_SUM, ROW_LIST, 0, 0},
        {ROW_SUM, ROW_LIST, NAND_READ_ENTRIES_MAX + 1, 0},
        {ROW_SUM, ROW_LIST, UINT32_MAX, 0},
        {ROW_SUM, ROW_LIST, ROW_UNITS, 2},
        {ROW_SUM + 8, ROW_LIST, ROW_UNITS, 0},
        {ROW_SUM, ROW_LIST + 32, ROW_UNITS, 0},
        {W_DRAM_BYTES - 64, ROW_LIST, ROW_UNITS, 0},
        {W_DRAM_BYTES - 64, ROW_LIST, ROW_UNITS, NAND_MOVE_BEGIN},
        {ROW_SUM, W_DRAM_BYTES - 64, ROW_UNITS, 0},
    };
    static const struct {
        uint64_t data, meta;
    } bad_units[] = {
        {ROW_DATA + 4, ROW_META},
        {ROW_DATA, ROW_META + 4},
        {W_DRAM_BYTES - NAND_DATA_LEN + 8, ROW_META},
        {ROW_DATA, W_DRAM_BYTES - NAND_META_LEN + 8},
        {ROW_DATA, 0 - TEST_DRAM_BASE}, /* The controller's address is 0. */
    };

    (void)state;
    for (unsigned int i = 0; i < ARRAY_LEN(bad) + ARRAY_LEN(bad_units); i++) {
        struct nand_world *w = new_row();

        if (i < ARRAY_LEN(bad)) {
            assert_int_equal(
                add_row(w, bad[i].to, bad[i].list, bad[i].units, bad[i].flags),
                1);
        } else {
            put_row_entry(w, ROW_UNITS - 1, bad_units[i - ARRAY_LEN(bad)].data,
                          bad_units[i - ARRAY_LEN(bad)].meta);
            assert_int_equal(add_row(w, ROW_SUM, ROW_LIST, ROW_UNITS, 0), 1);
        }
        assert_int_equal(get_le32(w->dram + MOVES + NAND_MOVE_STATUS),
                         NAND_MOVE_REFUSED);
        expect_sum(w, false, true);
        w_free(w);
    }
}

/* A row with a lost word changes nothing, so it can be repeated when the word
 * was cleared.  A row that begins a sum replaces lost words of the sum. */
static void test_hw_nand_rows_with_lost_words_can_be_repeated(void **state)
{
    static const uint32_t lost[] = {
        ROW_DATA + 8 + 512, /* of the last unit */
        ROW_META + (ROW_UNITS - 1) * NAND_META_LEN + 8,
        ROW_LIST + (ROW_UNITS - 1) * NAND_ENTRY_LEN + NAND_ENTRY_SYSTEM,
        ROW_SUM + ROW_SUM_LEN - 8,
    };

    (void)state;
    for (unsigned int i = 0; i < 2 * ARRAY_LEN(lost); i++) {
        struct nand_world *w = new_row();
        bool begins = i % 2 != 0;
        uint8_t flags = begins ? NAND_MOVE_BEGIN : 0;
        bool is_replaced = begins && i / 2 == 3;

        w->env.lost = TEST_DRAM_BASE + lost[i / 2];
        assert_int_equal(add_row(w, ROW_SUM, ROW_LIST, ROW_UNITS, flags),
                         is_replaced ? 3 : 1);
        assert_int_equal(w->env.lost == 0, is_replaced);
        if (!is_replaced) {
            expect_sum(w, false, true);
            w->env.lost = 0;
            assert_int_equal(add_row(w, ROW_SUM, ROW_LIST, ROW_UNITS, flags),
                             3);
        }
        expect_sum(w, true, !begins);
        w_free(w);
    }
}

/* The sum of a row that begins has a lost word, and so has a unit: the word of
 * the sum stays lost, because nothing is written. */
static void test_hw_nand_rows_that_are_refused_replace_no_lost_word(
    void **state)
{
    struct nand_world *w = new_row();

    (void)state;
    put_row_entry(w, ROW_UNITS - 1, ROW_DATA + 4, ROW_META);
    w->env.lost = TEST_DRAM_BASE + ROW_SUM + 64;
    assert_int_equal(add_row(w, ROW_SUM, ROW_LIST, ROW_UNITS, NAND_MOVE_BEGIN),
                     1);
    assert_int_equal(w->env.lost, TEST_DRAM_BASE + ROW_SUM + 64);
    w_free(w);
}

/* A read replaces a lost word of its buffer; a program needs the word. */
static void test_hw_nand_buffers_and_lost_words(void **state)
{
    struct nand_world *w = w_new("slc", false, 4);
    uint8_t command[NAND_CMD_LEN] = {
        [NAND_CMD_PLANES] = 1, [NAND_CMD_ENTRIES] = 1};
    uint8_t *entry = w->dram + W_LIST;

    (void)state;
    put_le64(command + NAND_CMD_LIST, TEST_DRAM_BASE + W_LIST);
    put_le64(entry + NAND_ENTRY_DATA, TEST_DRAM_BASE + W_BUF);
    put_le16(entry + NAND_ENTRY_LENGTH, NAND_DATA_LEN);
    for (unsigned int i = 0; i < 2; i++) {
        command[NAND_CMD_OPCODE] = i == 0 ? NAND_CMD_READ : NAND_CMD_PROGRAM;
        w->env.lost = TEST_DRAM_BASE + W_BUF + 64;
        w_put(w, command);
        w_write(w, A_QUEUE_KICK, 1);
        w_settle(w);
        assert_int_equal(w_take(w, NULL),
                         i == 0 ? NAND_CQE_ERASED : NAND_CQE_BAD_ADDRESS);
        assert_int_equal(w->env.lost != 0, i);
    }
    w_free(w);
}

static void test_hw_nand_lists_of_moves_are_bounded(void **state)
{
    struct nand_world *w = w_new("slc", false, 4);
    uint64_t at = TEST_DRAM_BASE + MOVE_MEMORY;

    (void)state;
    for (uint32_t i = 0; i < NAND_MOVES_MAX; i++) {
        put_move(w, i, NAND_MOVE_COPY, at, at + 8, 8);
    }
    assert_int_equal(run_moves(w, 0), 0);
    assert_int_equal(run_moves(w, NAND_MOVES_MAX), NAND_MOVES_MAX);
    assert_int_equal(run_moves(w, NAND_MOVES_MAX + 1), 0);
    w_write(w, A_NAND_MOVE, 0); /* not in DRAM */
    w_write(w, A_NAND_MOVE, UINT32_MAX);
    w_free(w);
}
