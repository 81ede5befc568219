/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Random commands on several dies of the NAND controller, compared with a model
 * of the contents.  Requests to storage end in any order, time passes at any
 * moment, and the machine is stopped in between.
 *
 * A die executes its commands in the order of their submission, so the model
 * knows the result of each command when it is submitted.  An urgent read may
 * pass earlier commands: it finds any value that the wordline has had.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "tests/unit/hw-model/nand/nand_world.h"

enum {
    DIES = 4,
    PLANES = 2, /* that are used */
    BLOCKS = 2,
    WORDLINES = 2,
    SLOTS = W_COMMANDS,
    SLOT_LEN = 2 * NAND_DATA_LEN, /* data, then the entry */
    STEPS = 4000,
};

struct pending {
    bool is_used;
    bool is_urgent;
    uint8_t opcode;
    uint8_t status;  /* that the model expects */
    uint32_t place;  /* of the wordline */
    uint32_t number; /* of all commands of its die */
    uint64_t value;  /* READ: that the model expects */
};

struct block {
    uint64_t value[WORDLINES]; /* 0: erased */
    uint32_t next;
    bool is_bad;
};

struct model {
    struct nand_world *w;
    struct block blocks[DIES][PLANES][BLOCKS];
    struct pending slots[SLOTS];
    uint64_t random;
    uint32_t versions;
    uint32_t submitted[DIES]; /* commands */
    uint32_t last[DIES];      /* number of the last one that completed */
    unsigned int completed;
};

static uint32_t next_random(struct model *m, uint32_t below)
{
    m->random = m->random * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(m->random >> 33) % below;
}

static uint32_t slot_offset(uint32_t slot)
{
    return W_BUF + slot * SLOT_LEN;
}

static void fill_data(uint8_t *data, uint64_t value)
{
    for (size_t i = 0; i < NAND_DATA_LEN; i += 8) {
        put_le64(data + i, value);
    }
}

static void put_entry(struct model *m, uint32_t slot, uint32_t plane,
                      uint32_t wordline)
{
    uint8_t *entry = m->w->dram + slot_offset(slot) + NAND_DATA_LEN;

    memset(entry, 0, NAND_ENTRY_LEN);
    put_le64(entry + NAND_ENTRY_DATA, TEST_DRAM_BASE + slot_offset(slot));
    put_le16(entry + NAND_ENTRY_LENGTH, NAND_DATA_LEN);
    entry[NAND_ENTRY_PLANE] = (uint8_t)plane;
    put_le16(entry + NAND_ENTRY_WORDLINE, (uint16_t)wordline);
}

/* What the model expects of this command; the model's contents change. */
static void expect_result(struct model *m, struct pending *p,
                          struct block *block, uint32_t wordline)
{
    p->status = NAND_CQE_OK;
    if (p->opcode == NAND_CMD_ERASE) {
        memset(block->value, 0, sizeof(block->value));
        block->next = 0;
    } else if (p->opcode == NAND_CMD_READ) {
        p->value = block->value[wordline];
        p->status = p->value == 0 ? NAND_CQE_ERASED : NAND_CQE_OK;
    } else if (block->next != wordline) {
        p->status = NAND_CQE_RULE;
    } else {
        block->value[wordline] = (uint64_t)++m->versions << 32 | p->place;
        block->next++;
    }
}

static void submit_command(struct model *m, uint8_t opcode)
{
    uint32_t slot = next_random(m, SLOTS), die = next_random(m, DIES);
    uint32_t plane = next_random(m, PLANES), b = next_random(m, BLOCKS);
    uint32_t wordline = next_random(m, WORDLINES);
    struct block *block = &m->blocks[die][plane][b];
    struct pending *p = &m->slots[slot];
    uint8_t bytes[NAND_CMD_LEN] = {0};
    uint8_t *data = m->w->dram + slot_offset(slot);

    if (p->is_used || block->is_bad) {
        return;
    }
    *p = (struct pending){
        .is_used = true,
        .opcode = opcode,
        .is_urgent = opcode == NAND_CMD_READ && next_random(m, 2) == 0,
        .place = die << 24 | plane << 16 | b << 8 | wordline,
        .number = ++m->submitted[die],
    };
    expect_result(m, p, block, wordline);
    fill_data(data, opcode == NAND_CMD_PROGRAM ? block->value[wordline] : 1);
    put_entry(m, slot, plane, wordline);
    bytes[NAND_CMD_OPCODE] = opcode;
    bytes[NAND_CMD_FLAGS] = p->is_urgent ? NAND_CMD_URGENT : 0;
    bytes[NAND_CMD_ENTRIES] = opcode != NAND_CMD_ERASE;
    bytes[NAND_CMD_CHANNEL] = (uint8_t)(die / 2);
    bytes[NAND_CMD_DIE] = (uint8_t)(die % 2);
    bytes[NAND_CMD_PLANES] = (uint8_t)BIT(plane);
    put_le64(bytes + NAND_CMD_COOKIE, slot);
    put_le64(bytes + NAND_CMD_LIST,
             TEST_DRAM_BASE + slot_offset(slot) + NAND_DATA_LEN);
    put_le16(bytes + NAND_CMD_BLOCK + 2 * plane, (uint16_t)b);
    put_le16(bytes + NAND_CMD_WORDLINE, (uint16_t)wordline);
    w_put(m->w, bytes);
    w_write(m->w, A_QUEUE_KICK, 1);
}

static void check_read(const struct model *m, const struct pending *p,
                       const uint8_t *data, uint8_t status)
{
    uint64_t value = get_le64(data);

    for (size_t i = 8; i < NAND_DATA_LEN; i += 8) {
        assert_int_equal(get_le64(data + i), value);
    }
    if (!p->is_urgent) {
        assert_int_equal(status, p->status);
        assert_int_equal(value, p->status == NAND_CQE_OK ? p->value : 1);
    } else if (status == NAND_CQE_OK) {
        assert_int_equal((uint32_t)value, p->place);
        assert_in_range(value >> 32, 1, m->versions);
    } else {
        assert_int_equal(status, NAND_CQE_ERASED);
        assert_int_equal(value, 1); /* nothing was written */
    }
}

/* A die executes commands that are not urgent in their order.  If operations
 * take time, the next command may complete while a unit is being decoded. */
static void check_order(struct model *m, const struct pending *p)
{
    uint32_t *last = &m->last[p->place >> 24];

    if (!p->is_urgent && !m->w->nand.config.is_realtime) {
        assert_true(p->number > *last);
        *last = p->number;
    }
}

static void take_completions(struct model *m)
{
    uint64_t slot;
    uint8_t status;

    while ((status = w_take(m->w, &slot)) != 0xff) {
        struct pending *p = &m->slots[slot];

        assert_true(p->is_used);
        p->is_used = false;
        m->completed++;
        check_order(m, p);
        if (p->opcode == NAND_CMD_READ) {
            check_read(m, p, m->w->dram + slot_offset((uint32_t)slot), status);
        } else {
            assert_int_equal(status, p->status);
        }
    }
}

/* Erase everything; blocks that the factory marked as bad are not used. */
static void start_model(struct model *m)
{
    for (uint32_t die = 0; die < DIES; die++) {
        for (uint32_t plane = 0; plane < PLANES; plane++) {
            for (uint32_t b = 0; b < BLOCKS; b++) {
                m->blocks[die][plane][b].is_bad =
                    (nand_array_block(m->w->nand.array, die / 2, die % 2, plane,
                                      b)
                         ->flags &
                     NAND_BLOCK_FACTORY_BAD) != 0;
            }
        }
    }
}

static void take_random_step(struct model *m)
{
    static const uint8_t opcodes[] = {
        NAND_CMD_ERASE, NAND_CMD_PROGRAM, NAND_CMD_PROGRAM, NAND_CMD_PROGRAM,
        NAND_CMD_READ,  NAND_CMD_READ,    NAND_CMD_READ,
    };
    uint32_t what = next_random(m, 100);

    if (what < 40) {
        submit_command(m, opcodes[next_random(m, ARRAY_LEN(opcodes))]);
    } else if (what < 75) {
        if (m->w->ram.queue.count > 0) {
            (void)nand_ram_step(&m->w->ram,
                                next_random(m, m->w->ram.queue.count));
        }
    } else if (what < 90) {
        w_run(m->w);
    } else if (what < 99) {
        (void)w_next_deadline(m->w);
    } else if (next_random(m, 8) == 0) {
        w_stop(m->w);
        hw_nand_resume(&m->w->nand);
    }
    take_completions(m);
    w_check_timers(m->w);
}

static void run_seed(uint64_t seed, const char *profile, bool is_realtime)
{
    struct model *m = calloc(1, sizeof(*m));

    m->w = w_new(profile, is_realtime, W_CMD_LOG2);
    m->random = seed;
    start_model(m);
    for (unsigned int i = 0; i < STEPS; i++) {
        take_random_step(m);
    }
    do { /* nothing hangs: all commands end */
        w_settle(m->w);
    } while (w_next_deadline(m->w));
    take_completions(m);
    for (unsigned int i = 0; i < SLOTS; i++) {
        assert_false(m->slots[i].is_used);
    }
    assert_true(m->completed > STEPS / 30);
    w_stop(m->w);
    w_free(m->w);
    free(m);
}

static void test_hw_nand_random_commands_find_what_was_programmed(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 12; seed++) {
        print_message("seed %u\n", (unsigned int)seed);
        run_seed(seed, seed % 4 == 0 ? W_CACHED_SLC : "slc", seed % 2 == 0);
    }
}
