/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Power cuts of a NAND array: at every request to storage of a workload, in
 * several ways.  Afterwards the array must be what flash is after a cut, and
 * usable.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/hw-model/nand/nand_bed.h"

enum { BLOCKS = 2, WORDLINES = 3, PLANES = 3 /* mask: planes 0 and 1 */ };

/* An operation of the workload, for planes 0 and 1. */
struct work {
    bool is_erase;
    bool is_slc;
    bool at_once;
    uint8_t block;
    uint8_t wordline;
    uint8_t version;
};

static const struct work workload[] = {
    {.block = 0, .wordline = 0, .version = 1},
    {.block = 0, .wordline = 1, .version = 1, .at_once = true},
    {.block = 1, .is_erase = true, .is_slc = true},
    {.block = 1, .wordline = 0, .version = 2},
    {.block = 1, .wordline = 1, .version = 2, .at_once = true},
    {.block = 0, .wordline = 2, .version = 1},
    {.block = 0, .is_erase = true},
    {.block = 0, .wordline = 0, .version = 3, .at_once = true},
    {.block = 1, .is_erase = true, .at_once = true},
    {.block = 1, .wordline = 0, .version = 4},
    {.block = 0, .is_erase = true, .is_slc = true, .at_once = true},
    {.block = 0, .wordline = 0, .version = 5, .at_once = true},
    {.block = 0, .wordline = 1, .version = 5},
};

/* What is known of a block: the versions of its wordlines; 0: erased. */
struct model {
    uint8_t version[BLOCKS][WORDLINES];
    bool is_slc[BLOCKS];
};

static void model_apply(struct model *model, const struct work *work)
{
    if (work->is_erase) {
        memset(model->version[work->block], 0, WORDLINES);
        model->is_slc[work->block] = work->is_slc;
    } else {
        model->version[work->block][work->wordline] = work->version;
    }
}

static int run_work(struct bed *bed, const struct work *work)
{
    return work->is_erase
               ? bed_erase(bed, PLANES, work->block, work->is_slc,
                           work->at_once)
               : bed_program(bed, PLANES, work->block, work->wordline,
                             work->version, work->at_once);
}

/* Count the units of a wordline with each status.  Good ones must be right. */
static void count_units(struct bed *bed, bool is_slc, unsigned int plane,
                        unsigned int block, unsigned int wordline,
                        uint8_t version, unsigned int counts[3])
{
    const struct nand_geometry *geometry = nand_array_geometry(bed->array);

    memset(counts, 0, 3 * sizeof(counts[0]));
    for (unsigned int page = 0; page < (is_slc ? 1u : geometry->pages);
         page++) {
        for (unsigned int unit = 0; unit < geometry->units; unit++) {
            counts[bed_read(bed, plane, block, wordline, page, unit,
                            version)]++;
        }
    }
}

/* A block that no operation was changing is as the model says. */
static void check_block(struct bed *bed, const struct model *model,
                        unsigned int plane, unsigned int block)
{
    unsigned int counts[3];

    for (unsigned int i = 0; i < WORDLINES; i++) {
        uint8_t version = model->version[block][i];

        count_units(bed, model->is_slc[block], plane, block, i, version,
                    counts);
        assert_int_equal(counts[NAND_UNIT_UNCORRECTABLE], 0);
        assert_int_equal(
            counts[version == 0 ? NAND_UNIT_GOOD : NAND_UNIT_ERASED], 0);
    }
}

/* What a cut has left of a wordline or block: seen at least once each. */
struct outcomes {
    unsigned int not_begun;
    unsigned int half;
    unsigned int done;
};

/* A program was in progress: the wordline is erased, torn or programmed. */
static void check_torn_program(struct bed *bed, const struct model *model,
                               const struct work *work, unsigned int plane,
                               struct outcomes *outcomes)
{
    struct model before = *model;
    unsigned int counts[3];
    struct nand_op *op;

    count_units(bed, model->is_slc[work->block], plane, work->block,
                work->wordline, work->version, counts);
    if (counts[NAND_UNIT_ERASED] != 0) {
        assert_int_equal(
            counts[NAND_UNIT_GOOD] + counts[NAND_UNIT_UNCORRECTABLE], 0);
        outcomes->not_begun++;
        check_block(bed, model, plane, work->block);
        return;
    }
    if (counts[NAND_UNIT_UNCORRECTABLE] == 0) {
        outcomes->done++;
        model_apply(&before, work);
        check_block(bed, &before, plane, work->block);
        return;
    }
    outcomes->half++;
    if (work->wordline + 1 < WORDLINES) {
        op = bed_program_op(bed, (uint8_t)BIT(plane), work->block,
                            work->wordline + 1u, 9, true);
        assert_true(bed_start(bed, op));
        assert_int_equal(op->verdict, NAND_VERDICT_RULE);
        nand_op_put(bed->array, op);
    }
    for (unsigned int i = 0; i < work->wordline; i++) {
        count_units(bed, model->is_slc[work->block], plane, work->block, i,
                    model->version[work->block][i], counts);
        assert_int_equal(
            counts[NAND_UNIT_UNCORRECTABLE] + counts[NAND_UNIT_ERASED], 0);
    }
}

/* An erase was in progress: the block is as before, half erased or erased. */
static void check_torn_erase(struct bed *bed, const struct model *model,
                             const struct work *work, unsigned int plane,
                             uint32_t number, struct outcomes *outcomes)
{
    const struct nand_block *block = bed_block(bed, plane, work->block);
    struct model after = *model;
    struct nand_op *op;

    if (block->number == number) {
        outcomes->not_begun++;
        check_block(bed, model, plane, work->block);
        return;
    }
    assert_int_equal(block->number, number + 1);
    model_apply(&after, work);
    if ((block->flags & NAND_BLOCK_HALF_ERASED) == 0) {
        outcomes->done++;
        check_block(bed, &after, plane, work->block);
        return;
    }
    outcomes->half++;
    assert_int_equal(bed_read(bed, plane, work->block, 0, 0, 0, 0),
                     NAND_UNIT_UNCORRECTABLE);
    op = bed_program_op(bed, (uint8_t)BIT(plane), work->block, 0, 9, true);
    assert_true(bed_start(bed, op));
    assert_int_equal(op->verdict, NAND_VERDICT_RULE);
    nand_op_put(bed->array, op);
}

/* Erase and program everything: the array is usable. */
static void check_usable(struct bed *bed)
{
    for (unsigned int block = 0; block < BLOCKS; block++) {
        assert_int_equal(bed_erase(bed, PLANES, block, false, false),
                         NAND_VERDICT_OK);
        assert_int_equal(bed_program(bed, PLANES, block, 0, 8, true),
                         NAND_VERDICT_OK);
        assert_int_equal(bed_read(bed, 1, block, 0, 2, 3, 8), NAND_UNIT_GOOD);
        assert_int_equal(bed_read(bed, 0, block, 1, 0, 0, 8), NAND_UNIT_ERASED);
    }
}

/*
 * Run the workload until `budget` requests are completed, and cut the power.
 *
 * @return whether the power was cut before its end
 */
static bool cut_workload(struct bed *bed, uint32_t budget, uint64_t seed,
                         struct outcomes *program, struct outcomes *erase)
{
    struct model model = {0};
    const struct work *work = NULL;
    uint32_t number = 0;

    bed->budget = budget;
    for (unsigned int i = 0; i < ARRAY_LEN(workload); i++) {
        work = &workload[i];
        number = bed_block(bed, 0, work->block)->number;
        if (run_work(bed, work) == -1) {
            break;
        }
        model_apply(&model, work);
        work = NULL;
    }
    if (work == NULL) {
        return false;
    }
    nand_ram_power_cut(&bed->ram, seed);
    bed->budget = BED_FOREVER;
    bed_reopen(bed);
    for (unsigned int plane = 0; plane < 2; plane++) {
        for (unsigned int block = 0; block < BLOCKS; block++) {
            if (block != work->block) {
                check_block(bed, &model, plane, block);
            } else if (work->is_erase) {
                check_torn_erase(bed, &model, work, plane, number, erase);
            } else {
                check_torn_program(bed, &model, work, plane, program);
            }
        }
    }
    check_usable(bed);
    return true;
}

static void test_a_cut_at_every_request_leaves_a_usable_array(void **state)
{
    struct outcomes program = {0}, erase = {0};
    uint32_t cuts = 0;
    bool was_cut = true;

    (void)state;
    for (uint32_t budget = 0; was_cut; budget++) {
        for (uint64_t seed = 0; seed < 3 && was_cut; seed++) {
            struct bed *bed = bed_new("tlc2021", BLOCKS, WORDLINES);

            was_cut =
                cut_workload(bed, budget, budget * 3 + seed, &program, &erase);
            bed_free(bed);
            cuts += was_cut;
        }
    }
    /* 13 operations of 2 planes: between one and four requests each. */
    assert_in_range(cuts, 3 * 40, 3 * 100);
    assert_true(program.not_begun > 5 && program.half > 5 && program.done > 5);
    assert_true(erase.not_begun > 5 && erase.half > 5 && erase.done > 5);
}

/* ---- A fault that cuts the power during an operation */

struct cut {
    struct bed *bed;
    uint8_t *left; /* storage at the cut */
    uint32_t cuts;
};

static bool cut_every_operation(void *ctx, const struct nand_event *event,
                                struct nand_fault *fault)
{
    (void)ctx;
    *fault = (struct nand_fault){.effect = NAND_EFFECT_POWER_CUT, .rule = 7};
    return event->stage == NAND_STAGE_BEGINS;
}

static void keep_storage(void *ctx, uint32_t rule)
{
    struct cut *cut = ctx;

    assert_int_equal(rule, 7);
    cut->cuts++;
    memcpy(cut->left, cut->bed->ram.bytes, cut->bed->ram.size_bytes);
}

/* The storage is what an operation that takes time leaves after it has begun.
 * If the power does not fail, the operation goes on to its end. */
static void test_a_fault_cuts_the_power_as_if_operations_took_time(void **state)
{
    static const uint8_t active = 1;

    (void)state;
    for (unsigned int i = 0; i < ARRAY_LEN(workload); i++) {
        struct bed *timed = bed_new("tlc2021", BLOCKS, WORDLINES);
        struct bed *fast = bed_new("tlc2021", BLOCKS, WORDLINES);
        struct work work = workload[i];
        struct cut cut = {.bed = fast, .left = malloc(fast->ram.size_bytes)};
        struct nand_op *op;

        assert_non_null(cut.left);
        for (unsigned int j = 0; j < i; j++) {
            assert_int_equal(run_work(timed, &workload[j]), NAND_VERDICT_OK);
            assert_int_equal(run_work(fast, &workload[j]), NAND_VERDICT_OK);
        }
        op = work.is_erase ? bed_op(timed, NAND_OP_ERASE, PLANES, work.block)
                           : bed_program_op(timed, PLANES, work.block,
                                            work.wordline, work.version, false);
        op->is_slc = work.is_slc;
        assert_true(bed_start(timed, op));
        nand_array_set_hook(
            fast->array, &(struct nand_fault_hook){.active = &active,
                                                   .judge = cut_every_operation,
                                                   .power_cut = keep_storage,
                                                   .ctx = &cut});
        work.at_once = true;
        assert_int_equal(run_work(fast, &work), NAND_VERDICT_OK);
        assert_int_equal(cut.cuts, 1);
        assert_memory_equal(cut.left, timed->ram.bytes, fast->ram.size_bytes);
        assert_true(bed_finish(timed, op));
        assert_memory_equal(fast->ram.bytes, timed->ram.bytes,
                            fast->ram.size_bytes);
        nand_op_put(timed->array, op);
        free(cut.left);
        bed_free(timed);
        bed_free(fast);
    }
}

/* Power fails again and again while the array is used after a cut. */
static void test_cuts_after_cuts_leave_a_usable_array(void **state)
{
    struct bed *bed = bed_new("tlc2021", BLOCKS, WORDLINES);

    (void)state;
    for (uint64_t seed = 0; seed < 40; seed++) {
        bed->budget = (uint32_t)(seed * 7 % 23);
        for (unsigned int i = 0; i < ARRAY_LEN(workload); i++) {
            int verdict = run_work(bed, &workload[i]);

            if (verdict == -1) {
                nand_ram_power_cut(&bed->ram, seed);
                break;
            }
            assert_true(verdict == NAND_VERDICT_OK ||
                        verdict == NAND_VERDICT_RULE ||
                        verdict == NAND_VERDICT_BAD_ARGUMENT);
        }
        bed->budget = BED_FOREVER;
        bed_reopen(bed);
    }
    check_usable(bed);
    bed_free(bed);
}

/* A killed process may leave any number of the bytes of a write. */
static void test_a_program_torn_at_any_byte_is_half_programmed(void **state)
{
    struct bed *bed = bed_new("tlc2021", 1, 2);
    struct nand_layout layout;
    uint8_t *slot, *copy;
    uint32_t len;

    (void)state;
    assert_int_equal(bed_program(bed, 1, 0, 0, 1, true), NAND_VERDICT_OK);
    assert_int_equal(bed_program(bed, 1, 0, 1, 2, true), NAND_VERDICT_OK);
    nand_layout(&layout, nand_array_geometry(bed->array));
    slot = bed->ram.bytes + nand_layout_slot(&layout, 0, 1);
    len = nand_slot_unit(12) + NAND_WORDLINE_LEN;
    copy = malloc(len);
    assert_non_null(copy);
    memcpy(copy, slot, len);
    for (uint32_t kept = 0; kept <= len;
         kept += kept < 80 || kept > len - 80 ? 1 : 997) {
        unsigned int counts[3];

        memset(slot, 0, len);
        memcpy(slot, copy, kept);
        bed_reopen(bed);
        assert_int_equal(bed_read(bed, 0, 0, 0, 2, 3, 1), NAND_UNIT_GOOD);
        count_units(bed, false, 0, 0, 1, 2, counts);
        if (kept < NAND_WORDLINE_LEN) {
            assert_int_equal(counts[NAND_UNIT_ERASED], 12);
        } else if (kept < len) {
            assert_int_equal(counts[NAND_UNIT_ERASED], 0);
            assert_true(counts[NAND_UNIT_UNCORRECTABLE] >= 9);
        } else {
            assert_int_equal(counts[NAND_UNIT_GOOD], 12);
        }
    }
    free(copy);
    bed_free(bed);
}

static void test_data_of_an_older_erasure_never_comes_back(void **state)
{
    struct bed *bed = bed_new("tlc2021", 1, 3);
    struct nand_layout layout;
    uint8_t *slots, *copy;

    (void)state;
    for (unsigned int i = 0; i < 3; i++) {
        assert_int_equal(bed_program(bed, 1, 0, i, 1, true), NAND_VERDICT_OK);
    }
    nand_layout(&layout, nand_array_geometry(bed->array));
    slots = bed->ram.bytes + nand_layout_slot(&layout, 0, 0);
    copy = malloc(layout.block_bytes);
    assert_non_null(copy);
    memcpy(copy, slots, layout.block_bytes);
    assert_int_equal(bed_erase(bed, 1, 0, false, true), NAND_VERDICT_OK);
    /* The storage has not discarded anything. */
    memcpy(slots, copy, layout.block_bytes);
    bed_reopen(bed);
    assert_int_equal(bed_read(bed, 0, 0, 0, 0, 0, 1), NAND_UNIT_ERASED);
    assert_int_equal(bed_program(bed, 1, 0, 0, 2, true), NAND_VERDICT_OK);
    bed_reopen(bed);
    assert_int_equal(bed_read(bed, 0, 0, 0, 0, 0, 2), NAND_UNIT_GOOD);
    assert_int_equal(bed_read(bed, 0, 0, 1, 0, 0, 1), NAND_UNIT_ERASED);
    assert_int_equal(bed_read(bed, 0, 0, 2, 0, 0, 1), NAND_UNIT_ERASED);
    free(copy);
    bed_free(bed);
}

/* Fill both blocks; `turns` decides whose turn it is. */
static void fill_blocks(struct bed *bed, const uint8_t turns[8])
{
    uint8_t next[BLOCKS] = {0};

    for (unsigned int i = 0; i < 8; i++) {
        uint8_t block = turns[i];

        if (next[block] == 0) {
            assert_int_equal(bed_erase(bed, PLANES, block, false, false),
                             NAND_VERDICT_OK);
        } else {
            assert_int_equal(bed_program(bed, PLANES, block, next[block] - 1u,
                                         block + 1u, i % 3 == 0),
                             NAND_VERDICT_OK);
        }
        next[block]++;
    }
    assert_true(bed_sync(bed));
}

static void test_the_same_operations_leave_the_same_bytes(void **state)
{
    static const uint8_t turns[3][8] = {{0, 0, 0, 0, 1, 1, 1, 1},
                                        {1, 0, 1, 0, 1, 0, 0, 1},
                                        {1, 1, 1, 1, 0, 0, 0, 0}};
    struct bed *first = bed_new("tlc2021", BLOCKS, WORDLINES);

    (void)state;
    fill_blocks(first, turns[0]);
    for (unsigned int i = 1; i < 3; i++) {
        struct bed *bed = bed_new("tlc2021", BLOCKS, WORDLINES);

        fill_blocks(bed, turns[i]);
        assert_memory_equal(bed->ram.bytes, first->ram.bytes,
                            first->ram.size_bytes);
        bed_free(bed);
    }
    bed_free(first);
}
