/* SPDX-License-Identifier: BSD-2-Clause */
/* Faults while a mount loads a checkpoint, and while it rebuilds what it could
 * not read. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "storage/ftl/state.h"
#include "storage/ftl/space/space.h"
#include "tests/unit/storage/ftl/ftl_faults.h"

enum {
    DEAD_DIE =
        1, /* it holds the first row of the checkpoint, with all pieces */
    FAILED_DIE = 3,
    FAILED_PLANE = 2,
};

/* A drive that was in use, and was stopped in an orderly way. */
static struct bed *new_stopped(uint16_t checkpoint_superblocks)
{
    struct bed_config config = bed_four_dies;
    struct bed *bed;

    config.checkpoint_superblocks = checkpoint_superblocks;
    bed = bed_new(&config);
    bed_fill(bed);
    bed_use(bed, 5, 60);
    bed_wait_all(bed);
    bed_flush(bed);
    bed_settle(bed);
    bed_stop(bed);
    return bed;
}

/* Begin to mount a copy, in which the die is dead. */
static struct bed *start_with_dead_die(const struct bed *bed, uint64_t seed)
{
    struct bed *cut = bed_cut_saved(bed, seed);

    cut->changes_dead_dies = true;
    cut->dead_dies = BIT(DEAD_DIE);
    bed_start_mount(cut);
    cut->changes_dead_dies = false;
    return cut;
}

static enum ftl_state end_mount(struct bed *bed)
{
    while (ftl_state(bed->ftl) == FTL_MOUNTING) {
        assert_true(bed_step(bed));
    }
    return ftl_state(bed->ftl);
}

/* Whether the mount has loaded the checkpoint in a superblock, and not one
 * before it. */
static bool has_loaded(const struct bed *bed, uint32_t superblock)
{
    return bed->ftl->mount.checkpoint_row != 0 &&
           bed->ftl->checkpoint.superblock == superblock;
}

/* ---- Errors that are not the flash's. */

/*
 * One read of the mount ends with an error, every third one in its turn.  Among
 * them are the reads with which rows of the dead die are rebuilt.  The mount
 * must fail, unless another attempt rebuilds the row: without it, older
 * versions would count.
 * @return how many mounts have failed
 */
static uint32_t fail_each_read(const struct bed *bed)
{
    enum { STRIDE = 3 };
    uint32_t reads = 0, failed = 0;
    bool has_failed;

    do {
        struct bed *cut = start_with_dead_die(bed, 7);

        reads += STRIDE;
        cut->reads_until_error = reads;
        (void)end_mount(cut);
        has_failed = cut->reads_until_error == 0;
        cut->reads_until_error = 0;
        failed += ftl_state(cut->ftl) == FTL_FAILED;
        if (ftl_state(cut->ftl) == FTL_FAILED && reads % 8 == 0) {
            bed_mount(cut);
        }
        if (ftl_state(cut->ftl) == FTL_READY) {
            bed_check(cut);
        }
        bed_free(cut);
    } while (has_failed);
    return failed;
}

static void test_a_mount_fails_if_a_read_for_a_dead_die_has_an_error(
    void **state)
{
    (void)state;
    for (unsigned int i = 0; i < 2; i++) {
        struct bed *bed = new_stopped(i == 0 ? 0 : 6);

        assert_in_range(fail_each_read(bed), i == 0 ? 80 : 10, 400);
        bed_free(bed);
    }
}

/* Let the next read fail while a unit is being rebuilt. */
static void fail_rescues(struct bed *bed)
{
    unsigned int *errors = bed->ctx;

    bed->reads_until_error = 0;
    for (unsigned int i = 0; i < FTL_RESCUES; i++) {
        if (bed->ftl->parity.rescues[i].request != FTL_LIST_END) {
            bed->reads_until_error = 1;
            ++*errors;
        }
    }
}

/* The drive is on, and reads of other dies fail while units are rebuilt.
 * Garbage collection must not take these units for lost, however often it tries
 * to move them: hosts get them when the reads succeed again. */
static void test_what_could_not_be_rebuilt_for_an_error_is_not_lost(
    void **state)
{
    struct bed *bed = new_stopped(6);
    struct nand_injection fault =
        fault_anywhere(NAND_OP_READ, NAND_EFFECT_UNCORRECTABLE);
    unsigned int errors = 0;
    uint32_t superblock;

    (void)state;
    bed_mount(bed);
    bed_settle(bed);
    superblock = ftl_place_superblock(&bed->ftl->layout, bed->ftl->map[300]);
    fault.die = DEAD_DIE;
    fault.block = (int32_t)superblock;
    inject_fault(bed, &fault);
    bed->ctx = &errors;
    bed->after_event = fail_rescues;
    for (uint32_t i = 0; i < bed->ftl->layout.superblocks; i++) {
        ftl_due_move_soon(&bed->ftl->space_floor, superblock, FTL_CAUSE_LEVEL);
        ftl_due_move_soon(&bed->ftl->space_floor, i, FTL_CAUSE_LEVEL);
        bed->ftl->has_work = true;
        bed_settle(bed);
    }
    bed->after_event = NULL;
    bed->reads_until_error = 0;
    nand_array_clear_injections(bed->array);
    assert_int_not_equal(errors, 0);
    assert_int_equal(ftl_counters(bed->ftl)->lost_units, 0);
    bed_settle(bed);
    bed_check(bed);
    bed_free(bed);
}

/* ---- Units of the checkpoint that cannot be read. */

/* Make a plane of a die's block with the latest checkpoint, or all planes,
 * unreadable. */
static void damage_checkpoint(struct bed *bed, uint32_t superblock,
                              unsigned int die, int32_t plane)
{
    struct nand_injection fault =
        fault_anywhere(NAND_OP_READ, NAND_EFFECT_UNCORRECTABLE);

    fault.die = (int32_t)die;
    fault.plane = plane;
    fault.block = (int32_t)superblock;
    inject_fault(bed, &fault);
}

static void test_a_checkpoint_is_loaded_if_a_plane_of_it_cannot_be_read(
    void **state)
{
    struct bed *bed = new_stopped(6);
    uint32_t superblock = bed->ftl->checkpoint.superblock;

    (void)state;
    for (unsigned int die = 0; die < bed_four_dies.geometry.dies; die++) {
        struct bed *cut = bed_cut_saved(bed, die);

        bed_start_mount(cut);
        damage_checkpoint(cut, superblock, die, NAND_ANYWHERE);
        assert_int_equal(end_mount(cut), FTL_READY);
        assert_true(has_loaded(cut, superblock));
        bed_check(cut);
        bed_free(cut);
    }
    bed_free(bed);
}

/* Then two units of a stripe are lost.  All other stripes have lost one only,
 * so that the mount finds everything without the checkpoint. */
static void test_a_checkpoint_that_cannot_be_rebuilt_is_not_loaded(void **state)
{
    struct bed *bed = new_stopped(6);
    uint32_t superblock = bed->ftl->checkpoint.superblock;

    (void)state;
    for (unsigned int die = 0; die < bed_four_dies.geometry.dies; die++) {
        struct bed *cut;

        if (die == DEAD_DIE) {
            continue;
        }
        cut = start_with_dead_die(bed, die);
        damage_checkpoint(cut, superblock, die, NAND_ANYWHERE);
        assert_int_equal(end_mount(cut), FTL_READY);
        assert_false(has_loaded(cut, superblock));
        bed_check(cut);
        bed_free(cut);
    }
    bed_free(bed);
}

/*
 * All planes of a die have failed in each block, and were erased since.  So the
 * checkpoint has nothing on this die, and is longer than a stripe.  The rows of
 * the die are not the checkpoint's end.
 */
static void test_a_checkpoint_beside_a_die_without_planes_is_loaded(
    void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed < 3; seed++) {
        struct bed_config config = bed_four_dies;
        uint32_t superblock;
        struct bed *bed;

        config.seed = seed;
        config.geometry.dies = 6;
        config.geometry.blocks = 60;
        config.geometry.wordlines = 16;
        config.logical_units = 9600;
        config.num_requests = 4;
        bed = bed_new(&config);
        for (uint32_t i = 0; i < config.geometry.blocks; i++) {
            ftl_health_note_failure(&bed->ftl->space_floor, i, FAILED_DIE, 0xf);
        }
        for (uint32_t unit = 0; unit < 40; unit++) {
            bed_write(bed, (uint64_t)unit * BED_SECTORS, BED_SECTORS);
        }
        bed_flush(bed);
        bed_settle(bed);
        bed_stop(bed);
        superblock = bed->ftl->checkpoint.superblock;
        bed_mount(bed);
        assert_true(has_loaded(bed, superblock));
        bed_free(bed);
    }
}

/* The bytes of a place in storage; NULL: it holds nothing. */
static uint8_t *find_slot(const struct bed *bed, uint32_t place)
{
    const struct ftl_layout *layout = &bed->ftl->layout;
    const struct nand_block *block;
    struct ftl_flash_unit unit;
    struct nand_layout slots;
    struct ftl_flash_op op;

    ftl_layout_row(layout, ftl_place_row(layout, place), &op);
    ftl_layout_unit(layout, place % layout->row_units, &unit);
    block = nand_array_block(bed->array, 0, op.die, unit.plane, op.block);
    if ((block->flags & NAND_BLOCK_KNOWN) == 0 || op.wordline >= block->next) {
        return NULL;
    }
    nand_layout(&slots, &bed_four_dies.geometry);
    return bed->ram.bytes +
           nand_layout_slot(&slots,
                            nand_block_index(&bed_four_dies.geometry, 0, op.die,
                                             unit.plane, op.block),
                            op.wordline) +
           nand_slot_unit(unit.unit);
}

/* Make all copies of the health page unreadable that do not need the dead die,
 * and the others, too, by damaging another unit of their stripe. */
static void damage_health_pages(struct bed *bed)
{
    uint32_t dies = bed_four_dies.geometry.dies;

    for (uint32_t i = 0; i < bed->ftl->layout.places; i++) {
        uint8_t *slot = find_slot(bed, i);
        struct ftl_system system;

        if (slot == NULL ||
            !ftl_system_parse(&system, slot + NAND_SLOT_SYSTEM) ||
            system.kind != FTL_KIND_TRIM ||
            system.number != bed->ftl->trim_pages) {
            continue;
        }
        if (ftl_place_row(&bed->ftl->layout, i) % dies == DEAD_DIE) {
            slot = find_slot(bed, i + bed->ftl->layout.row_units);
        }
        if (slot != NULL) {
            slot[0] ^= 0x40;
        }
    }
}

/*
 * A plane that had failed before the checkpoint was written is in no sum of it.
 * Only the checkpoint says that it has failed, because the health page cannot
 * be read.
 * @param kind  the operation that had failed: after an erasure, the plane
 *              cannot be read; after a program, it was erased
 */
static void load_beside_failed_plane(enum nand_op_kind kind)
{
    struct bed *bed = bed_new(&bed_four_dies);
    struct nand_injection fault = fault_anywhere(kind, NAND_EFFECT_FAIL);
    uint32_t superblock;
    struct bed *cut;

    fault.die = FAILED_DIE;
    fault.plane = FAILED_PLANE;
    inject_fault(bed, &fault);
    for (unsigned int i = 0; i < 4; i++) {
        bed_fill(bed);
    }
    bed_settle(bed);
    bed_stop(bed);
    superblock = bed->ftl->checkpoint.superblock;
    assert_int_equal(
        bed->ftl->failed_planes[superblock * bed_four_dies.geometry.dies +
                                FAILED_DIE],
        BIT(FAILED_PLANE));
    damage_health_pages(bed);
    cut = start_with_dead_die(bed, 3);
    assert_int_equal(end_mount(cut), FTL_READY);
    assert_true(has_loaded(cut, superblock));
    for (uint32_t i = 0; i < cut->units; i++) {
        cut->unit[i].may_fail = true; /* beside a health page */
    }
    assert_in_range(bed_check_each(cut), 0, 16);
    bed_free(cut);
    bed_free(bed);
}

static void test_a_checkpoint_beside_a_plane_that_cannot_be_read_is_rebuilt(
    void **state)
{
    (void)state;
    load_beside_failed_plane(NAND_OP_ERASE);
}

static void test_a_checkpoint_beside_a_failed_plane_that_is_erased_is_rebuilt(
    void **state)
{
    (void)state;
    load_beside_failed_plane(NAND_OP_PROGRAM);
}
