/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Random commands on several dies of the NAND controller, compared with a model
 * of the contents.  Reads have several entries.  Requests to storage end in any
 * order, time passes at any moment, and the machine is stopped and the
 * controller reset in between.
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
    READ_ENTRIES = 6, /* at most */
    SLOT_LIST = READ_ENTRIES * NAND_DATA_LEN,
    SLOT_LEN = SLOT_LIST + NAND_DATA_LEN, /* data, then the entries */
    STEPS = 4000,
};

/* One entry of a READ. */
struct wanted {
    uint32_t place; /* of the wordline */
    uint64_t value; /* that the model expects; 0: erased */
};

struct pending {
    bool is_used;
    bool is_urgent;
    uint8_t opcode;
    uint8_t status;  /* that the model expects */
    uint8_t entries; /* 0 of an erase */
    uint32_t place;  /* of the first wordline */
    uint32_t number; /* of all commands of its die */
    struct wanted wanted[READ_ENTRIES];
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

static void put_entry(struct model *m, uint32_t slot, unsigned int index,
                      uint32_t place)
{
    uint8_t *entry = m->w->dram + slot_offset(slot) + SLOT_LIST +
                     (size_t)index * NAND_ENTRY_LEN;

    memset(entry, 0, NAND_ENTRY_LEN);
    put_le64(entry + NAND_ENTRY_DATA,
             TEST_DRAM_BASE + slot_offset(slot) + index * NAND_DATA_LEN);
    put_le16(entry + NAND_ENTRY_LENGTH, NAND_DATA_LEN);
    entry[NAND_ENTRY_PLANE] = (uint8_t)(place >> 16);
    put_le16(entry + NAND_ENTRY_WORDLINE, (uint8_t)place);
}

static struct block *block_of(struct model *m, uint32_t place)
{
    return &m->blocks[place >> 24][place >> 16 & 0xff][place >> 8 & 0xff];
}

/* What the model expects of an erase or a program; the model's contents
 * change. */
static void expect_change(struct model *m, struct pending *p)
{
    struct block *block = block_of(m, p->place);
    uint32_t wordline = p->place & 0xff;

    p->status = NAND_CQE_OK;
    if (p->opcode == NAND_CMD_ERASE) {
        memset(block->value, 0, sizeof(block->value));
        block->next = 0;
    } else if (block->next != wordline) {
        p->status = NAND_CQE_RULE;
    } else {
        block->value[wordline] = (uint64_t)++m->versions << 32 | p->place;
        block->next++;
    }
}

/* Fill in the data and the list of a program or an erase. */
static void prepare_change(struct model *m, uint32_t slot)
{
    struct pending *p = &m->slots[slot];

    p->entries = p->opcode == NAND_CMD_PROGRAM;
    expect_change(m, p);
    fill_data(m->w->dram + slot_offset(slot),
              block_of(m, p->place)->value[p->place & 0xff]);
    put_entry(m, slot, 0, p->place);
}

/* Fill in the entries of a read, which are of any wordlines of its block. */
static void prepare_read(struct model *m, uint32_t slot)
{
    struct pending *p = &m->slots[slot];
    uint8_t *data = m->w->dram + slot_offset(slot);

    p->status = NAND_CQE_OK;
    p->is_urgent = next_random(m, 2) == 0;
    p->entries = (uint8_t)(1 + next_random(m, READ_ENTRIES));
    for (unsigned int i = 0; i < p->entries; i++) {
        uint32_t wordline = next_random(m, WORDLINES);
        struct wanted *wanted = &p->wanted[i];

        wanted->place = (p->place & ~0xffu) | wordline;
        wanted->value = block_of(m, p->place)->value[wordline];
        if (wanted->value == 0) {
            p->status = NAND_CQE_ERASED;
        }
        fill_data(data + (size_t)i * NAND_DATA_LEN, 1);
        put_entry(m, slot, i, wanted->place);
    }
}

static void put_command(struct model *m, uint32_t slot)
{
    const struct pending *p = &m->slots[slot];
    uint32_t die = p->place >> 24, plane = p->place >> 16 & 0xff;
    uint8_t bytes[NAND_CMD_LEN] = {0};

    bytes[NAND_CMD_OPCODE] = p->opcode;
    bytes[NAND_CMD_FLAGS] = p->is_urgent ? NAND_CMD_URGENT : 0;
    bytes[NAND_CMD_ENTRIES] = p->entries;
    bytes[NAND_CMD_CHANNEL] = (uint8_t)(die / 2);
    bytes[NAND_CMD_DIE] = (uint8_t)(die % 2);
    bytes[NAND_CMD_PLANES] = (uint8_t)BIT(plane);
    put_le64(bytes + NAND_CMD_COOKIE, slot);
    put_le64(bytes + NAND_CMD_LIST,
             TEST_DRAM_BASE + slot_offset(slot) + SLOT_LIST);
    put_le16(bytes + NAND_CMD_BLOCK + 2 * plane, p->place >> 8 & 0xff);
    put_le16(bytes + NAND_CMD_WORDLINE, p->place & 0xff);
    w_put(m->w, bytes);
    w_write(m->w, A_QUEUE_KICK, 1);
}

static void submit_command(struct model *m, uint8_t opcode)
{
    uint32_t slot = next_random(m, SLOTS), die = next_random(m, DIES);
    uint32_t plane = next_random(m, PLANES), b = next_random(m, BLOCKS);
    uint32_t wordline = next_random(m, WORDLINES);
    struct pending *p = &m->slots[slot];

    if (p->is_used || m->blocks[die][plane][b].is_bad) {
        return;
    }
    *p = (struct pending){
        .is_used = true,
        .opcode = opcode,
        .place = die << 24 | plane << 16 | b << 8 | wordline,
        .number = ++m->submitted[die],
    };
    if (opcode == NAND_CMD_READ) {
        prepare_read(m, slot);
    } else {
        prepare_change(m, slot);
    }
    put_command(m, slot);
}

/* @return whether the entry found its wordline erased */
static bool check_entry(const struct model *m, const struct wanted *wanted,
                        const uint8_t *data, bool is_urgent)
{
    uint64_t value = get_le64(data);

    for (size_t i = 8; i < NAND_DATA_LEN; i += 8) {
        assert_int_equal(get_le64(data + i), value);
    }
    if (!is_urgent) {
        assert_int_equal(value, wanted->value != 0 ? wanted->value : 1);
    } else if (value != 1) {
        assert_int_equal((uint32_t)value, wanted->place);
        assert_in_range(value >> 32, 1, m->versions);
    }
    return value == 1; /* Nothing was written. */
}

static void check_read(const struct model *m, const struct pending *p,
                       const uint8_t *data, uint8_t status)
{
    bool is_erased = false;

    for (unsigned int i = 0; i < p->entries; i++) {
        is_erased |= check_entry(
            m, &p->wanted[i], data + (size_t)i * NAND_DATA_LEN, p->is_urgent);
    }
    assert_int_equal(status, is_erased ? NAND_CQE_ERASED : NAND_CQE_OK);
    assert_true(p->is_urgent || status == p->status);
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

/* Blocks that the factory marked as bad are not used. */
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

static void complete_all(struct model *m)
{
    do {
        w_settle(m->w);
    } while (w_next_deadline(m->w));
    take_completions(m);
    for (unsigned int i = 0; i < SLOTS; i++) {
        assert_false(m->slots[i].is_used);
    }
}

static void erase_block(struct model *m, uint32_t place)
{
    struct pending *p = &m->slots[0];

    if (block_of(m, place)->is_bad) {
        return;
    }
    *p = (struct pending){
        .is_used = true,
        .opcode = NAND_CMD_ERASE,
        .place = place,
        .number = ++m->submitted[place >> 24],
    };
    prepare_change(m, 0);
    put_command(m, 0);
    complete_all(m);
}

/* A reset drops the commands that have not begun, so the contents are not known
 * afterwards: erase everything. */
static void reset_model(struct model *m)
{
    w_reset(m->w);
    w_enable_queue(m->w);
    for (unsigned int i = 0; i < SLOTS; i++) {
        m->slots[i].is_used = false;
    }
    for (uint32_t die = 0; die < DIES; die++) {
        for (uint32_t plane = 0; plane < PLANES; plane++) {
            for (uint32_t b = 0; b < BLOCKS; b++) {
                erase_block(m, die << 24 | plane << 16 | b << 8);
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
    } else if (what < 98) {
        (void)w_next_deadline(m->w);
    } else if (what < 99) {
        w_stop(m->w);
        hw_nand_resume(&m->w->nand);
    } else if (next_random(m, 4) == 0) {
        reset_model(m);
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
    complete_all(m); /* nothing hangs */
    assert_true(m->completed > STEPS / 30);
    w_stop(m->w);
    w_free(m->w);
    free(m);
}

static void test_hw_nand_random_commands_find_what_was_programmed(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 24; seed++) {
        print_message("seed %u\n", (unsigned int)seed);
        run_seed(seed, seed % 3 == 0 ? "slc" : W_CACHED_SLC, seed % 4 != 0);
    }
}
