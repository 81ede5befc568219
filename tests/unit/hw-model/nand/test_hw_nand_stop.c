/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Stops and resets of the NAND controller in every moment of reads of several
 * pages.  With cache operations, both registers of a die then have data of the
 * same operation.
 *
 * Two dies share a channel and read at the same time, so that their registers
 * also wait for the channel.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "tests/unit/hw-model/nand/nand_world.h"

enum {
    DIES = 2, /* of channel 0 */
    WORDLINES = 2,
    MOST_PAGES = 3, /* of a read */
    SLOT_LIST = MOST_PAGES * NAND_DATA_LEN,
    SLOT_LEN = SLOT_LIST + NAND_DATA_LEN, /* data, then the entries */
};

/* In how many moments a die had data in its cache register, while its page
 * register was about to receive the next command of the same read. */
struct seen {
    unsigned int waiting;   /* for the channel */
    unsigned int receiving; /* the command */
};

static uint8_t *slot_of(struct nand_world *w, uint32_t slot)
{
    return w->dram + W_BUF + (size_t)slot * SLOT_LEN;
}

static uint8_t fill_of(uint8_t die, uint16_t wordline)
{
    return (uint8_t)(0x51 + die * WORDLINES + wordline);
}

/* A block of plane 0 of the die that the factory did not mark as bad. */
static uint16_t good_block(struct nand_world *w, uint8_t die)
{
    uint16_t block = 0;

    while (nand_array_block(w->nand.array, 0, die, 0, block)->flags &
           NAND_BLOCK_FACTORY_BAD) {
        block++;
    }
    return block;
}

/* Put a command with `entries` entries for consecutive pages, beginning with
 * `wordline`.  The last wordline is followed by the first one. */
static void put_command(struct nand_world *w, uint8_t opcode, uint8_t die,
                        uint16_t wordline, uint8_t entries)
{
    uint8_t *list = slot_of(w, die) + SLOT_LIST;
    uint64_t data = TEST_DRAM_BASE + W_BUF + (uint64_t)die * SLOT_LEN;
    uint8_t command[NAND_CMD_LEN] = {[NAND_CMD_OPCODE] = opcode,
                                     [NAND_CMD_DIE] = die,
                                     [NAND_CMD_PLANES] = 1,
                                     [NAND_CMD_ENTRIES] = entries};

    memset(list, 0, (size_t)entries * NAND_ENTRY_LEN);
    for (uint16_t i = 0; i < entries; i++) {
        uint8_t *entry = list + (size_t)i * NAND_ENTRY_LEN;

        put_le64(entry + NAND_ENTRY_DATA, data + (uint64_t)i * NAND_DATA_LEN);
        put_le16(entry + NAND_ENTRY_LENGTH, NAND_DATA_LEN);
        put_le16(entry + NAND_ENTRY_WORDLINE,
                 (uint16_t)((wordline + i) % WORDLINES));
    }
    put_le64(command + NAND_CMD_COOKIE, die);
    put_le64(command + NAND_CMD_LIST, data + SLOT_LIST);
    put_le16(command + NAND_CMD_BLOCK, good_block(w, die));
    put_le16(command + NAND_CMD_WORDLINE, wordline);
    w_put(w, command);
}

/* Do the next thing that can happen. @return whether there was one */
static bool take_step(struct nand_world *w)
{
    if (w->env.deferred) {
        w_run(w);
        return true;
    }
    return nand_ram_step(&w->ram, 0) || w_next_deadline(w);
}

static void complete_commands(struct nand_world *w, unsigned int count)
{
    w_write(w, A_QUEUE_KICK, 1);
    while (take_step(w)) {
    }
    while (count-- > 0) {
        assert_int_equal(w_take(w, NULL), NAND_CQE_OK);
    }
    assert_int_equal(w_take(w, NULL), 0xff);
}

/* A controller whose two dies have a programmed block each. */
static struct nand_world *new_world(void)
{
    struct nand_world *w = w_new(W_CACHED_SLC, true, W_CMD_LOG2);

    for (uint8_t die = 0; die < DIES; die++) {
        put_command(w, NAND_CMD_ERASE, die, 0, 0);
        complete_commands(w, 1);
        for (uint16_t i = 0; i < WORDLINES; i++) {
            memset(slot_of(w, die), fill_of(die, i), NAND_DATA_LEN);
            put_command(w, NAND_CMD_PROGRAM, die, i, 1);
            complete_commands(w, 1);
        }
    }
    return w;
}

static void put_reads(struct nand_world *w, uint8_t pages)
{
    for (uint8_t die = 0; die < DIES; die++) {
        memset(slot_of(w, die), 0, SLOT_LEN);
        put_command(w, NAND_CMD_READ, die, 0, pages);
    }
}

static void check_data(struct nand_world *w, uint8_t pages)
{
    for (uint8_t die = 0; die < DIES; die++) {
        const uint8_t *data = slot_of(w, die);

        for (size_t i = 0; i < (size_t)pages * NAND_DATA_LEN; i++) {
            assert_int_equal(
                data[i],
                fill_of(die, (uint16_t)(i / NAND_DATA_LEN % WORDLINES)));
        }
    }
}

static void count_moment(const struct nand_world *w, struct seen *seen)
{
    for (unsigned int die = 0; die < DIES; die++) {
        const struct hw_nand_register *page = &w->nand.registers[die];
        const struct hw_nand_register *cache =
            &w->nand.registers[HW_NAND_DIES + die];

        if (cache->state == HW_DIE_HOLDS && cache->op == page->op) {
            seen->waiting += page->state == HW_DIE_ACCEPTS;
            seen->receiving += page->state == HW_DIE_RECEIVES;
        }
    }
}

/* The stop ends the reads that have begun.  Those that have not begun are done
 * when the machine runs again. */
static void stop_and_check(struct nand_world *w, uint8_t pages)
{
    w_stop(w);
    hw_nand_resume(&w->nand);
    complete_commands(w, DIES);
    check_data(w, pages);
}

/* The reset ends or drops the reads.  Reads that come later succeed. */
static void reset_and_check(struct nand_world *w, uint8_t pages)
{
    w_reset(w);
    w_enable_queue(w);
    put_reads(w, pages);
    complete_commands(w, DIES);
    check_data(w, pages);
}

/*
 * Begin reads, and call `end` after `steps` steps.
 * @return whether the reads had not ended by then
 */
static bool end_after(unsigned int steps, uint8_t pages, struct seen *seen,
                      void (*end)(struct nand_world *w, uint8_t pages))
{
    struct nand_world *w = new_world();
    bool goes_on = true;

    put_reads(w, pages);
    w_write(w, A_QUEUE_KICK, 1);
    while (steps > 0 && goes_on) {
        goes_on = take_step(w);
        steps--;
    }
    count_moment(w, seen);
    end(w, pages);
    w_stop(w);
    w_free(w);
    return goes_on;
}

static void end_in_every_moment(void (*end)(struct nand_world *w,
                                            uint8_t pages))
{
    struct seen seen = {0};

    for (uint8_t pages = 1; pages <= MOST_PAGES; pages++) {
        unsigned int steps = 0;

        while (end_after(steps, pages, &seen, end)) {
            steps++;
        }
        assert_true(steps > 4u * pages);
    }
    assert_true(seen.waiting > 0);
    assert_true(seen.receiving > 0);
}

static void test_hw_nand_a_stop_in_any_moment_ends_reads_of_several_pages(
    void **state)
{
    (void)state;
    end_in_every_moment(stop_and_check);
}

static void test_hw_nand_a_reset_in_any_moment_ends_reads_of_several_pages(
    void **state)
{
    (void)state;
    end_in_every_moment(reset_and_check);
}
