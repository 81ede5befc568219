/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Time while the storage of the array answers late, as on a busy computer: what
 * dies do is not delayed by that, but no operation begins before its command
 * was taken.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "tests/unit/hw-model/nand/nand_world.h"

enum {
    LATE_NS = 20000000,   /* longer than any operation */
    A_LITTLE_NS = 500000, /* shorter than an erase */
};

/* Put a command for plane 0 of die 0, with one entry unless it is an erase. Its
 * cookie counts the commands from 0. */
static void put_command(struct nand_world *w, uint8_t opcode, uint8_t flags,
                        uint16_t block, uint16_t wordline)
{
    uint32_t list = W_LIST + w->cmd_pi * NAND_ENTRY_LEN;
    uint8_t *entry = w->dram + list;
    uint8_t command[NAND_CMD_LEN] = {[NAND_CMD_OPCODE] = opcode,
                                     [NAND_CMD_FLAGS] = flags,
                                     [NAND_CMD_PLANES] = 1};

    put_le64(entry + NAND_ENTRY_DATA,
             TEST_DRAM_BASE + W_BUF + w->cmd_pi * NAND_DATA_LEN);
    put_le16(entry + NAND_ENTRY_LENGTH, NAND_DATA_LEN);
    put_le16(command + NAND_CMD_BLOCK, block);
    put_le64(command + NAND_CMD_COOKIE, w->cmd_pi);
    if (opcode != NAND_CMD_ERASE) {
        command[NAND_CMD_ENTRIES] = 1;
        put_le64(command + NAND_CMD_LIST, TEST_DRAM_BASE + list);
        put_le16(opcode == NAND_CMD_READ ? entry + NAND_ENTRY_WORDLINE
                                         : command + NAND_CMD_WORDLINE,
                 wordline);
    }
    w_put(w, command);
}

/* Let the controller take what was put. @return the time */
static uint64_t kick_queue(struct nand_world *w)
{
    w_write(w, A_QUEUE_KICK, 1);
    w_run(w);
    return w->env.now_ns;
}

/* Wait until this many commands have completed. @return the time */
static uint64_t finish_commands(struct nand_world *w, unsigned int count)
{
    for (;;) {
        uint8_t status;

        w_settle(w);
        while ((status = w_take(w, NULL)) != 0xff) {
            assert_int_equal(status, NAND_CQE_OK);
            assert_in_range(count, 1, W_COMMANDS);
            count--;
        }
        if (count == 0) {
            return w->env.now_ns;
        }
        assert_true(w_next_deadline(w));
    }
}

/* The time that a command takes while its die has no other. */
static uint64_t time_alone(struct nand_world *w, uint8_t opcode, uint16_t block,
                           uint16_t wordline)
{
    uint64_t taken_ns;

    put_command(w, opcode, 0, block, wordline);
    taken_ns = kick_queue(w);
    return finish_commands(w, 1) - taken_ns;
}

/* Let time pass until the storage has something to do.  It does not answer. */
static void wait_for_storage(struct nand_world *w)
{
    while (w->ram.queue.count == 0) {
        assert_true(w_next_deadline(w));
    }
}

/* Run a check with a part that has no cache operations and with one that has
 * them.  The first wordline of block 0 is programmed; block 1 is erased. */
static void check_both_parts(void (*check)(struct nand_world *w))
{
    static const char *const parts[] = {"slc", W_CACHED_SLC};

    for (unsigned int i = 0; i < 2; i++) {
        struct nand_world *w = w_new(parts[i], true, W_CMD_LOG2);

        (void)time_alone(w, NAND_CMD_ERASE, 0, 0);
        (void)time_alone(w, NAND_CMD_PROGRAM, 0, 0);
        (void)time_alone(w, NAND_CMD_ERASE, 1, 0);
        check(w);
        w_stop(w);
        w_free(w);
    }
}

/* The storage answers LATE_NS too late.  Then an urgent or another read comes:
 * it shall take as long as one that is alone, and complete last. */
static void check_late_read(struct nand_world *w, uint8_t flags,
                            unsigned int others)
{
    uint64_t taken_ns, late_ns;

    w->env.now_ns += LATE_NS;
    put_command(w, NAND_CMD_READ, flags, 0, 0);
    taken_ns = kick_queue(w);
    late_ns = finish_commands(w, others + 1) - taken_ns;
    assert_int_equal(late_ns, time_alone(w, NAND_CMD_READ, 0, 0));
}

static void check_read_after_end_of_erase(struct nand_world *w)
{
    put_command(w, NAND_CMD_ERASE, 0, 1, 0);
    (void)kick_queue(w);
    wait_for_storage(w);
    w_settle(w);
    wait_for_storage(w); /* The erase has ended. */
    check_late_read(w, 0, 1);
}

static void test_hw_nand_a_read_begins_when_it_comes_though_an_erase_is_late(
    void **state)
{
    (void)state;
    check_both_parts(check_read_after_end_of_erase);
}

static void check_read_after_read(struct nand_world *w)
{
    put_command(w, NAND_CMD_READ, 0, 0, 0);
    (void)kick_queue(w);
    wait_for_storage(w);
    check_late_read(w, 0, 1);
}

static void test_hw_nand_a_read_begins_when_it_comes_though_another_is_late(
    void **state)
{
    (void)state;
    check_both_parts(check_read_after_read);
}

static void check_program_after_program(struct nand_world *w)
{
    uint64_t alone_ns = time_alone(w, NAND_CMD_PROGRAM, 0, 1), taken_ns;

    put_command(w, NAND_CMD_PROGRAM, 0, 1, 0);
    (void)kick_queue(w);
    wait_for_storage(w);
    w->env.now_ns += LATE_NS;
    put_command(w, NAND_CMD_PROGRAM, 0, 1, 1);
    taken_ns = kick_queue(w);
    assert_int_equal(finish_commands(w, 2) - taken_ns, alone_ns);
}

static void test_hw_nand_a_program_begins_when_it_comes_though_another_is_late(
    void **state)
{
    (void)state;
    check_both_parts(check_program_after_program);
}

static void check_erase_before_urgent_read(struct nand_world *w)
{
    put_command(w, NAND_CMD_ERASE, 0, 1, 0);
    (void)kick_queue(w);
    wait_for_storage(w); /* The erase begins. */
    check_late_read(w, NAND_CMD_URGENT, 1);
    assert_int_equal(w->nand.regs.counters[NAND_COUNT_SUSPENDS], 0);
}

static void test_hw_nand_a_late_erase_that_has_passed_is_not_suspended(
    void **state)
{
    (void)state;
    check_both_parts(check_erase_before_urgent_read);
}

/* Two programs, and an urgent read that comes when both would have ended. */
static void check_programs_before_urgent_read(struct nand_world *w)
{
    put_command(w, NAND_CMD_PROGRAM, 0, 1, 0);
    put_command(w, NAND_CMD_PROGRAM, 0, 1, 1);
    (void)kick_queue(w);
    wait_for_storage(w);
    w_settle(w);
    wait_for_storage(w); /* The first program has ended. */
    check_late_read(w, NAND_CMD_URGENT, 2);
    assert_int_equal(w->nand.regs.counters[NAND_COUNT_SUSPENDS], 0);
}

static void test_hw_nand_an_urgent_read_passes_nothing_that_began_before_it(
    void **state)
{
    (void)state;
    check_both_parts(check_programs_before_urgent_read);
}

/*
 * Erase, and read urgently while the erase is in progress.
 * @return the time that this takes; *die_ns: for which the die was busy
 */
static uint64_t erase_beside_read(struct nand_world *w, bool is_late,
                                  uint64_t *die_ns)
{
    uint64_t busy_ns = hw_nand_busy_time(&w->nand, 0), begun_ns, end_ns;

    put_command(w, NAND_CMD_ERASE, 0, 1, 0);
    begun_ns = kick_queue(w);
    wait_for_storage(w);
    if (!is_late) {
        w_settle(w);
    }
    w->env.now_ns += A_LITTLE_NS;
    put_command(w, NAND_CMD_READ, NAND_CMD_URGENT, 0, 0);
    (void)kick_queue(w);
    end_ns = finish_commands(w, 2);
    *die_ns = hw_nand_busy_time(&w->nand, 0) - busy_ns;
    return end_ns - begun_ns;
}

static void check_erase_beside_urgent_read(struct nand_world *w)
{
    uint64_t die_ns, late_die_ns;
    uint64_t time_ns = erase_beside_read(w, false, &die_ns);
    uint64_t late_ns = erase_beside_read(w, true, &late_die_ns);

    assert_int_equal(w->nand.regs.counters[NAND_COUNT_SUSPENDS], 2);
    assert_int_equal(late_ns, time_ns);
    assert_int_equal(late_die_ns, die_ns);
}

static void test_hw_nand_a_late_erase_is_suspended_when_the_read_comes(
    void **state)
{
    (void)state;
    check_both_parts(check_erase_beside_urgent_read);
}

static void expect_completion(struct nand_world *w, uint64_t cookie)
{
    uint64_t found = UINT64_MAX;

    assert_int_equal(w_take(w, &found), NAND_CQE_OK);
    assert_int_equal(found, cookie);
}

/* There, what counts is how long the storage takes. */
static void test_hw_nand_without_time_an_urgent_read_passes_all_that_wait(
    void **state)
{
    struct nand_world *w = w_new("slc", false, W_CMD_LOG2);
    uint64_t first = 3;

    (void)state;
    (void)time_alone(w, NAND_CMD_ERASE, 0, 0);
    (void)time_alone(w, NAND_CMD_PROGRAM, 0, 0);
    (void)time_alone(w, NAND_CMD_ERASE, 1, 0);
    put_command(w, NAND_CMD_PROGRAM, 0, 1, 0);
    (void)kick_queue(w);
    w->env.now_ns += A_LITTLE_NS;
    put_command(w, NAND_CMD_PROGRAM, 0, 1, 1);
    (void)kick_queue(w);
    w->env.now_ns += A_LITTLE_NS;
    put_command(w, NAND_CMD_READ, NAND_CMD_URGENT, 0, 0);
    (void)kick_queue(w);
    w_settle(w);
    expect_completion(w, first);
    expect_completion(w, first + 2);
    expect_completion(w, first + 1);
    w_stop(w);
    w_free(w);
}
