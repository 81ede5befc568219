/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Random commands for the NAND controller, many at a time, beside a model of
 * the array: cache operations, urgent reads and suspensions, while the machine
 * is stopped for a save, the controller is reset, or the power fails.
 *
 * A die executes its commands in their order.  So the model knows the status of
 * each command and the data of each read, except those of urgent reads of a
 * block that commands before them change.  After a reset or a loss of power,
 * each die has executed some of its commands, from the first one on, and at
 * least those that have completed.
 */
#include <string.h>

#include "nand_bed.h"

#include "lib/bytes.h"
#include "lib/random.h"
#include "tests/test_fixture.h"

enum {
    CHANNELS = 2,
    DIES = 4, /* in all */
    BLOCKS = 5,
    WORDLINES = 6,
    OPS = 400, /* commands of a round */
    ROUNDS = 12,
    SEEDS = 4,
    LOOK_SLOT = NAND_BED_SLOTS - 1, /* for commands that are waited for */
    UNKNOWN = 0xff,                 /* a status that is not known */
};

struct block {
    bool is_slc;
    bool is_unknown; /* It has to be erased first. */
    uint16_t next;   /* wordline to program */
    uint32_t version[WORDLINES];
};

struct die {
    struct block block[BLOCKS];
};

struct op {
    uint8_t opcode, die, block, expected; /* status */
    uint16_t wordline;
    bool is_slc, is_done;
    uint32_t version;   /* that is programmed, or read */
    unsigned int count; /* of the units that are read */
};

static struct nand_bed bed;
static struct die settled[DIES]; /* before the commands of this round */
static struct die model[DIES];   /* after them */
static struct op ops[OPS];
static uint32_t num_ops;
static struct op *slot_op[NAND_BED_SLOTS]; /* NULL: the slot is free */
static unsigned int num_seen;
static uint32_t last_version;
static uint64_t random;

static uint32_t draw_number(uint32_t limit)
{
    return (uint32_t)(random_next(&random) % limit);
}

/* ---- Commands and the model. */

static struct nand_bed_place place_of(const struct op *op)
{
    static const uint8_t planes[BLOCKS] = {0x1, 0x1, 0xf, 0xf, 0x6};

    return (struct nand_bed_place){
        .channel = op->die / (DIES / CHANNELS),
        .die = op->die % (DIES / CHANNELS),
        .planes = planes[op->block],
        .block = op->block,
        .wordline = op->wordline,
        .slc = op->is_slc,
    };
}

/* Execute an erase or a program.  @return its status */
static uint8_t change_model(struct die *dies, const struct op *op)
{
    struct block *block = &dies[op->die].block[op->block];

    if (op->opcode == NAND_CMD_ERASE) {
        *block = (struct block){.is_slc = op->is_slc};
        return NAND_CQE_OK;
    }
    if (block->is_unknown || block->is_slc != op->is_slc) {
        return UNKNOWN;
    }
    if (block->next != op->wordline) {
        return NAND_CQE_RULE;
    }
    block->version[block->next++] = op->version;
    return NAND_CQE_OK;
}

static bool is_changing(const struct op *like)
{
    for (uint32_t i = 0; i < num_ops; i++) {
        if (&ops[i] != like && !ops[i].is_done &&
            ops[i].opcode != NAND_CMD_READ && ops[i].die == like->die &&
            ops[i].block == like->block) {
            return true;
        }
    }
    return false;
}

static void choose_op(struct op *op, bool *is_urgent)
{
    const struct block *block;
    uint32_t choice = draw_number(10);

    *op = (struct op){.die = (uint8_t)draw_number(DIES),
                      .block = (uint8_t)draw_number(BLOCKS)};
    block = &model[op->die].block[op->block];
    op->is_slc = block->is_slc;
    *is_urgent = false;
    if (block->is_unknown || choice == 0) {
        op->opcode = NAND_CMD_ERASE;
        op->is_slc = draw_number(2);
    } else if (choice < 6) {
        op->opcode = NAND_CMD_PROGRAM;
        op->version = ++last_version;
        op->wordline = draw_number(20) == 0 ? (uint16_t)draw_number(WORDLINES)
                                            : MIN(block->next, WORDLINES - 1);
    } else {
        op->opcode = NAND_CMD_READ;
        op->wordline = (uint16_t)draw_number(WORDLINES);
        *is_urgent = draw_number(2);
    }
}

static void start_read(struct op *op, unsigned int slot, bool is_urgent)
{
    const struct block *block = &model[op->die].block[op->block];
    struct nand_bed_place place = place_of(op);

    op->count = 1 + draw_number(nand_bed_units(&bed, &place));
    op->expected = NAND_CQE_ERASED;
    if (is_urgent && is_changing(op)) {
        op->expected = UNKNOWN;
    } else if (op->wordline < block->next) {
        op->expected = NAND_CQE_OK;
        op->version = block->version[op->wordline];
    }
    nand_bed_read(&bed, slot, &place, op->count, is_urgent);
}

static void start_op(unsigned int slot)
{
    struct op *op = &ops[num_ops++];
    struct nand_bed_place place;
    bool is_urgent;

    choose_op(op, &is_urgent);
    place = place_of(op);
    if (op->opcode == NAND_CMD_READ) {
        start_read(op, slot, is_urgent);
    } else {
        op->expected = change_model(model, op);
        if (op->opcode == NAND_CMD_ERASE) {
            nand_bed_erase(&bed, slot, &place);
        } else {
            nand_bed_program(&bed, slot, &place, op->version);
        }
    }
    slot_op[slot] = op;
}

static void check_done(const struct nand_done *done)
{
    struct op *op = slot_op[done->cookie];
    struct nand_bed_place place;

    assert_non_null(op);
    slot_op[done->cookie] = NULL;
    op->is_done = true;
    if (op->expected == UNKNOWN) {
        return;
    }
    assert_int_equal(done->status, op->expected);
    if (op->opcode == NAND_CMD_READ && op->expected == NAND_CQE_OK) {
        place = place_of(op);
        nand_bed_expect(&bed, (unsigned int)done->cookie, &place, op->count,
                        op->version);
    }
}

static void take_completions(void)
{
    while (num_seen < bed.num_done) {
        check_done(&bed.done[num_seen++]);
    }
    if (nand_outstanding(&bed.nand) == 0) {
        bed.num_done = num_seen = 0;
    }
}

/* ---- What is on the array. */

static bool wordline_matches(uint8_t die, uint8_t number, uint16_t wordline,
                             const struct block *block)
{
    const struct op op = {.die = die,
                          .block = number,
                          .wordline = wordline,
                          .is_slc = block->is_slc};
    struct nand_bed_place place = place_of(&op);
    const uint8_t *data = bed.slots[LOOK_SLOT].data;
    enum nand_cqe_status status;

    nand_bed_read(&bed, LOOK_SLOT, &place, nand_bed_units(&bed, &place), false);
    status = nand_bed_wait_one(&bed)->status;
    bed.num_done = 0;
    if (wordline >= block->next) {
        return status == NAND_CQE_ERASED;
    }
    /* The high half of each word is the version: nand_bed_fill(). */
    if (status != NAND_CQE_OK ||
        get_le32(data + 4) != block->version[wordline]) {
        return false;
    }
    nand_bed_expect(&bed, LOOK_SLOT, &place, nand_bed_units(&bed, &place),
                    block->version[wordline]);
    return true;
}

static bool block_matches(uint8_t die, uint8_t number,
                          const struct block *block)
{
    for (uint16_t i = 0; !block->is_unknown && i < WORDLINES; i++) {
        if (!wordline_matches(die, number, i, block)) {
            return false;
        }
    }
    return true;
}

/* @param half_changed  a block that does not matter */
static bool die_matches(uint8_t number, const struct die *die,
                        uint8_t half_changed)
{
    for (uint8_t i = 0; i < BLOCKS; i++) {
        if (i != half_changed && !block_matches(number, i, &die->block[i])) {
            return false;
        }
    }
    return true;
}

/* The next change of a die from `ops[i]` on, or NULL. */
static const struct op *next_change(uint8_t die, uint32_t i)
{
    while (i < num_ops &&
           (ops[i].die != die || ops[i].opcode == NAND_CMD_READ)) {
        i++;
    }
    return i < num_ops ? &ops[i] : NULL;
}

static bool has_done_change(uint8_t die, uint32_t i)
{
    const struct op *op;

    while ((op = next_change(die, i)) != NULL) {
        if (op->is_done) {
            return true;
        }
        i = (uint32_t)(op - ops) + 1;
    }
    return false;
}

/* The mode of an empty block cannot be seen. */
static void take_die(uint8_t number, const struct die *die,
                     uint8_t half_changed)
{
    model[number] = *die;
    for (uint8_t i = 0; i < BLOCKS; i++) {
        model[number].block[i].is_unknown |=
            i == half_changed || die->block[i].next == 0;
    }
}

/* Find out how many of its commands a die has executed.  If the power has
 * failed, the next one may have been half executed. */
static void find_state(uint8_t number, bool power_has_failed)
{
    struct die tried[DIES];
    const struct op *op;
    uint32_t i = 0;

    memcpy(tried, settled, sizeof(tried));
    for (;;) {
        uint8_t half = BLOCKS;

        op = next_change(number, i);
        if (op != NULL && power_has_failed) {
            half = op->block;
        }
        if (!has_done_change(number, i) &&
            die_matches(number, &tried[number], half)) {
            take_die(number, &tried[number], half);
            return;
        }
        assert_non_null(op);
        (void)change_model(tried, op);
        i = (uint32_t)(op - ops) + 1;
    }
}

/* ---- Rounds. */

static void stop_machine(void)
{
    struct hw_nand *core = bed.machine.nand;

    hw_nand_quiesce(core);
    while (!hw_nand_is_quiet(core)) {
        assert_true(nand_ram_step(&bed.flash, 0));
    }
    for (unsigned int i = 0; i < HW_NAND_REGISTERS; i++) {
        assert_int_equal(core->registers[i].state, HW_DIE_IDLE);
    }
    hw_nand_resume(core);
}

static void pass_steps(uint32_t steps)
{
    while (steps-- != 0) {
        if (!native_world_step(&bed.world)) {
            native_world_pass(&bed.world, draw_number(4)
                                              ? draw_number(20000)
                                              : draw_number(3000000));
        }
    }
}

static void run_commands(uint32_t count)
{
    while (num_ops < count) {
        unsigned int slot = draw_number(LOOK_SLOT);

        if (slot_op[slot] == NULL &&
            nand_outstanding(&bed.nand) < NAND_BED_COMMANDS) {
            start_op(slot);
        }
        if (draw_number(3) == 0) {
            nand_kick(&bed.nand);
            pass_steps(draw_number(30));
            take_completions();
        }
        if (draw_number(10) == 0) {
            stop_machine();
        }
    }
    nand_kick(&bed.nand);
}

static void interrupt_commands(bool power_fails)
{
    take_completions();
    if (power_fails) {
        nand_bed_power_cycle(&bed, random_next(&random));
    } else {
        nand_bed_reset(&bed);
    }
    num_seen = 0;
    memset(slot_op, 0, sizeof(slot_op));
    for (uint8_t i = 0; i < DIES; i++) {
        find_state(i, power_fails);
    }
}

static void run_round(void)
{
    run_commands(1 + draw_number(OPS));
    if (draw_number(2)) {
        nand_bed_wait(&bed, nand_outstanding(&bed.nand));
        take_completions();
    } else {
        interrupt_commands(draw_number(2));
    }
    for (uint8_t i = 0; i < DIES; i++) {
        assert_true(die_matches(i, &model[i], BLOCKS));
    }
    memcpy(settled, model, sizeof(settled));
    num_ops = 0;
}

static void run_seed(uint64_t seed)
{
    const struct nand_bed_config config = {
        .profile = seed % 3 == 2 ? "qlc" : "tlc2021",
        .channels = CHANNELS,
        .dies = DIES / CHANNELS,
        .blocks = BLOCKS,
        .wordlines = WORDLINES,
        .is_realtime = seed % 4 != 0,
    };

    random = seed;
    last_version = 0;
    nand_bed_init(&bed, &config);
    memset(model, 0, sizeof(model));
    memcpy(settled, model, sizeof(settled));
    for (uint32_t i = 0; i < ROUNDS; i++) {
        run_round();
    }
    nand_bed_end(&bed);
}

static void test_nand_random_commands_have_the_results_of_a_model(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        run_seed(seed);
    }
}

TEST_FIXTURE(NULL, NULL)
