/* SPDX-License-Identifier: BSD-2-Clause */
/* Dies that have died: the drive remembers them, and what was rebuilt. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "storage/ftl/state.h"
#include "storage/ftl/space/ftl_findings.h"
#include "storage/ftl/ops/ops.h"
#include "storage/ftl/space/space.h"
#include "tests/unit/storage/ftl/ftl_faults.h"

enum { DEAD_DIE = 2 };

/* A drive whose die has died, and whose data has all been moved since. */
static struct bed *new_rebuilt(const struct bed_config *config)
{
    struct bed *bed = bed_new(config);

    bed_fill(bed);
    inject_death(bed, NAND_OP_PROGRAM, DEAD_DIE, 0);
    bed_use(bed, 3, 40);
    bed_wait_all(bed);
    bed_flush(bed);
    bed_settle(bed);
    assert_int_equal(ftl_dead_dies(bed->ftl), 1);
    return bed;
}

/* The power is off, and then the die answers again. */
static struct bed *revive_die(struct bed *bed)
{
    struct bed *cut = bed_cut_saved(bed, bed->events);

    cut->changes_dead_dies = true;
    bed_free(bed);
    return cut;
}

/* Write everything, so that what the die still holds is old. */
static void test_a_die_that_answers_again_is_not_used(void **state)
{
    (void)state;
    for (unsigned int i = 0; i < 4; i++) {
        struct bed_config config = bed_four_dies;
        struct bed *bed;

        config.seed = 1 + i;
        config.checkpoint_superblocks = i % 2 == 0 ? 6 : 0;
        bed = new_rebuilt(&config);
        bed_fill(bed);
        bed_settle(bed);
        if (i == 2) {
            bed_stop(bed);
        }
        bed = revive_die(bed);
        bed_mount(bed);
        assert_int_equal(ftl_dead_dies(bed->ftl), 1);
        assert_int_equal(ftl_distrusted_dies(bed->ftl), 1);
        assert_false(ftl_has_parity(bed->ftl));
        bed->forbidden_dies = BIT(DEAD_DIE);
        bed_check(bed);
        bed_use(bed, 7, 60);
        bed_wait_all(bed);
        bed_flush(bed);
        bed_check(bed);
        bed_free(bed);
    }
}

/* The die answers again before all has been moved: what it holds is rebuilt. */
static void test_what_a_dead_die_held_is_rebuilt_at_a_later_start(void **state)
{
    (void)state;
    for (unsigned int i = 0; i < 8; i++) {
        struct bed *bed = bed_new_seeded(&bed_four_dies, 1 + i);

        bed_fill(bed);
        bed_settle(bed);
        inject_death(bed, NAND_OP_PROGRAM, DEAD_DIE, 0);
        for (unsigned int j = 0; ftl_dead_dies(bed->ftl) == 0; j++) {
            bed_write(bed, (uint64_t)j * BED_SECTORS, BED_SECTORS);
        }
        bed_flush(bed);
        bed = revive_die(bed);
        bed_mount(bed);
        assert_int_equal(ftl_distrusted_dies(bed->ftl), 1);
        bed->forbidden_dies = BIT(DEAD_DIE);
        bed_check(bed);
        assert_true(ftl_counters(bed->ftl)->rebuilt_units > 20);
        bed_settle(bed);
        bed_check(bed);
        bed_free(bed);
    }
}

/* There is no space in which the death could be recorded.  A flush does not
 * wait for that. */
static void test_a_full_read_only_medium_with_a_dead_die_can_be_flushed(
    void **state)
{
    struct bed_config config = bed_four_dies;
    struct bed *bed;

    (void)state;
    /* Write no checkpoint, because its superblock could be erased for space. */
    config.checkpoint_superblocks = 0;
    bed = bed_new(&config);
    bed_fill(bed);
    for (unsigned int i = 0; i < bed->ftl->num_streams; i++) {
        if (bed->ftl->streams[i].superblock != FTL_NOWHERE) {
            ftl_superblock_end(&bed->ftl->space_floor,
                               bed->ftl->streams[i].superblock);
        }
    }
    bed->ftl->has_work = true;
    bed_settle(bed);
    bed->ftl->is_read_only = true;
    for (uint32_t i = 0; i < bed_four_dies.geometry.blocks; i++) {
        if (bed->ftl->superblocks[i].state == FTL_SUPERBLOCK_FREE) {
            ftl_superblock_enter(&bed->ftl->space_floor, i,
                                 FTL_SUPERBLOCK_RETIRED);
        }
    }
    inject_death(bed, NAND_OP_READ, DEAD_DIE, 0);
    bed_check(bed);
    assert_int_equal(ftl_dead_dies(bed->ftl), 1);
    bed_flush(bed);
    bed_settle(bed);
    bed_check(bed);
    bed_free(bed);
}

/* A wipe erases a dead die that answers again, because the die may hold data of
 * hosts.  The die stays unused. */
static void test_a_wipe_erases_a_dead_die_that_answers_again(void **state)
{
    struct bed *bed = revive_die(new_rebuilt(&bed_four_dies));
    struct bed_io wipe = {.is_used = true, .io.op = MEDIA_READ};

    (void)state;
    bed_mount(bed);
    bed_settle(bed);
    assert_int_equal(ftl_distrusted_dies(bed->ftl), 1);
    bed_wipe(bed, &wipe);
    while (!wipe.is_done) {
        assert_true(bed_step(bed));
    }
    assert_int_equal(wipe.status, MEDIA_OK);
    for (uint32_t plane = 0; plane < bed_four_dies.geometry.planes; plane++) {
        for (uint32_t i = 0; i < bed_four_dies.geometry.blocks; i++) {
            const struct nand_block *block =
                nand_array_block(bed->array, 0, DEAD_DIE, plane, i);

            if ((block->flags & NAND_BLOCK_FACTORY_BAD) == 0) {
                assert_int_equal(block->next, 0);
            }
        }
    }
    bed_settle(bed);
    assert_int_equal(ftl_dead_dies(bed->ftl), 1);
    bed_free(bed);
}

/* A wipe fails because it cannot erase the die, and keeps the record. */
static void test_a_wipe_does_not_forget_a_dead_die(void **state)
{
    struct bed *bed = new_rebuilt(&bed_four_dies);
    struct bed_io wipe = {.is_used = true, .io.op = MEDIA_READ};

    (void)state;
    bed_wipe(bed, &wipe);
    while (!wipe.is_done) {
        assert_true(bed_step(bed));
    }
    assert_int_equal(wipe.status, MEDIA_WRITE_ERROR);
    bed_settle(bed);
    bed = revive_die(bed);
    bed_mount(bed);
    assert_int_equal(ftl_dead_dies(bed->ftl), 1);
    bed_free(bed);
}

static void test_a_start_does_not_move_again_what_was_moved(void **state)
{
    (void)state;
    for (unsigned int i = 0; i < 6; i++) {
        struct bed_config config = bed_four_dies;
        struct bed *bed;

        config.seed = 1 + i;
        config.checkpoint_superblocks = i % 2 == 0 ? 6 : 0;
        bed = new_rebuilt(&config);
        /* The mount moves what is in the last rows, and no more. */
        if (i % 2 == 0) {
            bed_stop(bed);
        }
        for (unsigned int start = 0; start < 2; start++) {
            bed_mount(bed);
            bed_settle(bed);
            assert_int_equal(ftl_dead_dies(bed->ftl), 1);
            assert_int_equal(ftl_distrusted_dies(bed->ftl), 0);
            assert_in_range(ftl_counters(bed->ftl)->moved_units, 0,
                            bed->units / (i % 2 == 0 ? 16 : 2));
            if (i % 2 == 0) {
                bed_stop(bed);
            }
        }
        bed_check(bed);
        bed_free(bed);
    }
}

/* ---- A die that dies during the mount after a power cut. */

/* Complete all stripes.  This may need several turns, because garbage
 * collection goes on and may begin another stripe. */
static void complete_stripes(struct bed *bed)
{
    while (!ftl_stripes_are_complete(bed->ftl)) {
        ftl_complete_stripes(bed->ftl);
        bed_settle(bed);
    }
}

/*
 * The die dies at an operation of kind `kind`, after `after` others of this
 * kind.
 * @return whether the mount has so many operations of this kind
 */
static bool survive_death_in_mount(const struct bed *bed,
                                   enum nand_op_kind kind, unsigned int die,
                                   uint32_t after)
{
    struct bed *cut = bed_cut(bed, after);
    struct bed *again;
    bool has_died;

    bed_start_mount(cut);
    inject_death(cut, kind, die, after);
    while (ftl_state(cut->ftl) == FTL_MOUNTING) {
        assert_true(bed_step(cut));
    }
    assert_int_equal(ftl_state(cut->ftl), FTL_READY);
    has_died = nand_array_die_is_dead(cut->array, 0, die);
    nand_array_clear_injections(cut->array);
    bed_check(cut);
    if (has_died && after % 3 == 0) {
        bed_flush(cut);
        bed_settle(cut);
        again = bed_cut(cut, after);
        bed_mount(again);
        bed_check(again);
        bed_free(again);
    }
    bed_free(cut);
    return has_died;
}

/* All stripes were complete before the cut: incomplete ones are only protected
 * after a mount that has ended. */
static void test_a_die_that_dies_during_a_mount_loses_nothing(void **state)
{
    unsigned int deaths[NAND_OP_ERASE + 1] = {0};

    (void)state;
    for (unsigned int i = 0; i < 4; i++) {
        struct bed_config config = bed_four_dies;
        struct bed *bed;

        config.seed = i;
        config.checkpoint_superblocks = i % 2 == 0 ? 6 : 0;
        bed = bed_new(&config);
        bed_fill(bed);
        bed_use(bed, i, 60);
        bed_wait_all(bed);
        bed_flush(bed);
        bed_settle(bed);
        complete_stripes(bed);
        for (unsigned int kind = NAND_OP_READ; kind <= NAND_OP_ERASE; kind++) {
            for (uint32_t after = 0; survive_death_in_mount(
                     bed, (enum nand_op_kind)kind, after % 4, after);
                 after += kind == NAND_OP_READ ? 7 : 1) {
                deaths[kind]++;
            }
        }
        bed_free(bed);
    }
    assert_true(deaths[NAND_OP_READ] > 20 && deaths[NAND_OP_PROGRAM] > 5 &&
                deaths[NAND_OP_ERASE] > 4);
}

/* ---- Planes that have failed, and a die or a plane that is dead at a start.
 */

/*
 * Planes fail, then the drive is switched off in an orderly way.  So all
 * stripes are complete, and nothing is lost although a die is dead at the next
 * start.  The planes that have failed before a superblock was opened are in no
 * sum of its stripes.
 */
static struct bed *new_with_failed_planes(uint64_t seed, uint16_t checkpoints,
                                          uint32_t failures)
{
    struct bed_config config = bed_four_dies;
    struct bed *bed;

    config.checkpoint_superblocks = checkpoints;
    bed = bed_new_seeded(&config, seed);
    bed_fill(bed);
    for (uint32_t i = 0; i < failures; i++) {
        struct nand_injection failure = fault_once(
            i % 2 == 0 ? NAND_OP_PROGRAM : NAND_OP_ERASE, NAND_EFFECT_FAIL, 7);

        inject_fault(bed, &failure);
        bed_use(bed, seed + i, 60);
        bed_wait_all(bed);
        bed_flush(bed);
    }
    for (unsigned int i = 0; i < seed % 4; i++) {
        bed_use(bed, seed * 31 + i, 100);
        bed_wait_all(bed);
        bed_flush(bed);
    }
    bed_settle(bed); /* Rows that failed after their parity are moved. */
    bed_stop(bed);
    return bed;
}

/* The die is dead at the next start. */
static void check_without_die(const struct bed *bed, unsigned int die)
{
    struct bed *cut = bed_cut_saved(bed, die);

    cut->changes_dead_dies = true;
    cut->dead_dies = (uint8_t)BIT(die);
    bed_mount(cut);
    bed_check(cut);
    bed_settle(cut);
    bed_check(cut);
    bed_free(cut);
}

/* From the next start on, nothing in one plane of the die can be read. */
static void check_without_plane(const struct bed *bed, unsigned int die)
{
    struct nand_injection fault =
        fault_anywhere(NAND_OP_READ, NAND_EFFECT_UNCORRECTABLE);
    struct bed *cut = bed_cut_saved(bed, die);

    fault.die = (int32_t)die;
    fault.plane = (int32_t)(bed->events % 4);
    bed_start_mount(cut);
    inject_fault(cut, &fault);
    while (ftl_state(cut->ftl) == FTL_MOUNTING) {
        assert_true(bed_step(cut));
    }
    assert_int_equal(ftl_state(cut->ftl), FTL_READY);
    bed_check(cut);
    bed_free(cut);
}

static void lose_die_after_planes(uint64_t seed, uint16_t checkpoints,
                                  uint32_t failures)
{
    struct bed *bed = new_with_failed_planes(seed, checkpoints, failures);

    for (unsigned int die = 0; die < 4; die++) {
        check_without_die(bed, die);
        check_without_plane(bed, die);
    }
    bed_free(bed);
}

static void test_failed_planes_and_then_a_dead_die_or_plane_lose_nothing(
    void **state)
{
    uint64_t first = bed_setting("FTL_FIRST", 1);

    (void)state;
    for (uint64_t i = first; i < first + bed_setting("FTL_SEEDS", 8); i++) {
        lose_die_after_planes(i, i % 2 == 0 ? 0 : 6, 1 + (uint32_t)(i / 2 % 3));
    }
}

/*
 * The same plane has failed in three dies, so more units of a stripe are
 * missing than a mount may leave out on its own.  It begins again when it has
 * read which planes have failed.
 */
static void test_a_mount_begins_again_when_it_knows_the_failed_planes(
    void **state)
{
    struct bed_config config = bed_four_dies;

    (void)state;
    config.geometry.dies = 6;
    config.checkpoint_superblocks = 0;
    for (unsigned int die = 0; die < 3; die++) {
        struct bed *bed = bed_new(&config);

        for (uint32_t i = 0; i < config.geometry.blocks; i++) {
            for (uint32_t other = 3; other < 6; other++) {
                ftl_health_note_failure(&bed->ftl->space_floor, i, other,
                                        BIT(1));
            }
        }
        bed->ftl->has_work = true;
        bed_settle(bed);
        bed_fill(bed);
        bed_use(bed, die, 200);
        bed_wait_all(bed);
        bed_flush(bed);
        bed_settle(bed);
        bed_stop(bed);
        check_without_die(bed, die);
        bed_free(bed);
    }
}

/*
 * The same plane has failed in the last dies at an erasure, so that its units
 * cannot be read.  At the next start, a unit in this plane of another die
 * cannot be read.  This is the only loss of its stripe.
 */
static void check_beside_unreadable_planes(unsigned int failures)
{
    enum { DIES = 8, PLANE = 1 };
    struct nand_injection failure =
        fault_anywhere(NAND_OP_ERASE, NAND_EFFECT_FAIL);
    struct nand_injection fault =
        fault_anywhere(NAND_OP_READ, NAND_EFFECT_UNCORRECTABLE);
    struct bed_config config = bed_four_dies;
    unsigned int checked = 0;
    struct bed *bed;

    config.geometry.dies = DIES;
    config.checkpoint_superblocks = 0;
    bed = bed_new(&config);
    failure.plane = PLANE;
    for (unsigned int die = DIES - failures; die < DIES; die++) {
        failure.die = (int32_t)die;
        inject_fault(bed, &failure);
    }
    for (unsigned int i = 0; i < 12; i++) {
        bed_fill(bed);
    }
    bed_settle(bed);
    bed_stop(bed);
    for (uint32_t i = 0; i < bed->units && checked != 8; i++) {
        const struct ftl_layout *layout = &bed->ftl->layout;
        uint32_t place = bed->ftl->map[i];
        struct bed *cut;

        fault.die = (int32_t)(ftl_place_row(layout, place) % DIES);
        fault.plane = layout->units[place % layout->row_units].plane;
        fault.block = (int32_t)ftl_place_superblock(layout, place);
        if (fault.plane != PLANE) {
            continue;
        }
        checked++;
        cut = bed_cut_saved(bed, i);
        bed_start_mount(cut);
        inject_fault(cut, &fault);
        while (ftl_state(cut->ftl) == FTL_MOUNTING) {
            assert_true(bed_step(cut));
        }
        assert_int_equal(ftl_state(cut->ftl), FTL_READY);
        bed_check(cut);
        bed_free(cut);
    }
    assert_int_not_equal(checked, 0);
    bed_free(bed);
}

/* Three planes are more than a mount leaves out on its own.  Beside five of
 * them, it tries to rebuild nothing before it knows these planes. */
static void test_a_unit_beside_planes_that_cannot_be_read_is_repaired(
    void **state)
{
    (void)state;
    check_beside_unreadable_planes(3);
    check_beside_unreadable_planes(5);
}

/*
 * The die dies while the mount scans it, and before that the scan could not
 * read some of its units.  These are rebuilt, too.
 */
static void test_a_die_dies_in_the_scan_after_units_could_not_be_read(
    void **state)
{
    struct bed_config config = bed_four_dies;
    unsigned int deaths = 0;
    struct bed *bed;

    (void)state;
    config.checkpoint_superblocks = 0;
    bed = bed_new(&config);
    bed_fill(bed);
    bed_settle(bed);
    bed_stop(bed);
    for (uint32_t after = 0; after < 2000; after += 37) {
        struct nand_injection fault =
            fault_anywhere(NAND_OP_READ, NAND_EFFECT_UNCORRECTABLE);
        struct bed *cut = bed_cut_saved(bed, after);

        fault.die = DEAD_DIE;
        fault.plane = (int32_t)(after % 4);
        bed_start_mount(cut);
        inject_fault(cut, &fault);
        inject_death(cut, NAND_OP_READ, DEAD_DIE, after);
        while (ftl_state(cut->ftl) == FTL_MOUNTING) {
            assert_true(bed_step(cut));
        }
        assert_int_equal(ftl_state(cut->ftl), FTL_READY);
        deaths += ftl_dead_dies(cut->ftl);
        bed_check(cut);
        bed_free(cut);
    }
    assert_in_range(deaths, 3, 53);
    bed_free(bed);
}

/* ---- A die that dies after an erasure was cut. */

enum { ERASURES = 12 };

/* How many dies have erased their block of a superblock.  Dies whose planes
 * have failed do not count. */
static unsigned int count_erased(const struct bed *bed, uint32_t superblock,
                                 unsigned int *dies)
{
    unsigned int count = 0;

    *dies = 0;
    for (unsigned int die = 0; die < bed->config.geometry.dies; die++) {
        if ((ftl_good_planes(&bed->ftl->space_floor, superblock, die) &
             BIT(0)) != 0) {
            ++*dies;
            count +=
                nand_array_block(bed->array, 0, die, 0, superblock)->next == 0;
        }
    }
    return count;
}

/* Whether the parity of a unit's stripe is not on flash. */
static bool is_unit_unprotected(const struct ftl *ftl, uint32_t unit)
{
    uint32_t place = ftl_entry_place(ftl->map[unit]);
    bool is_open = false;

    for (unsigned int i = 0; i < FTL_ACCUMULATORS; i++) {
        const struct ftl_accumulator *sum = &ftl->parity.accumulators[i];

        is_open |=
            sum->is_used && place != FTL_NOWHERE &&
            ftl_place_row(&ftl->layout, place) / ftl->layout.geometry.dies ==
                sum->stripe;
    }
    return is_open;
}

/* The die dies when the mount has copied what may be torn, and begins to erase.
 */
static void survive_death_before_erasures(const struct bed *bed,
                                          unsigned int die)
{
    struct bed *cut = bed_cut(bed, bed->events);

    for (uint32_t i = 0; i < bed->units; i++) {
        cut->unit[i].may_fail = is_unit_unprotected(bed->ftl, i);
    }
    bed_start_mount(cut);
    while (ftl_state(cut->ftl) == FTL_MOUNTING &&
           cut->ftl->mount.phase != FTL_MOUNT_CLEAR) {
        assert_true(bed_step(cut));
    }
    inject_death(cut, NAND_OP_READ, die, 0);
    while (ftl_state(cut->ftl) == FTL_MOUNTING) {
        assert_true(bed_step(cut));
    }
    assert_int_equal(ftl_state(cut->ftl), FTL_READY);
    (void)bed_check_each(cut);
    bed_free(cut);
}

/* Cut an erasure of which some dies' parts have begun, and others not. */
static void cut_erasure(struct bed *bed)
{
    uint32_t victim = bed->ftl->collection.victim;
    unsigned int *cuts = bed->ctx;
    unsigned int erased, dies;

    if (*cuts == ERASURES || victim == FTL_NOWHERE ||
        bed->ftl->superblocks[victim].state != FTL_SUPERBLOCK_ERASING) {
        return;
    }
    erased = count_erased(bed, victim, &dies);
    if (erased != 0 && erased != dies) {
        ++*cuts;
        for (unsigned int die = 0; die < bed->config.geometry.dies; die++) {
            survive_death_before_erasures(bed, die);
        }
    }
}

/* Fill a medium and erase superblocks; after each event, `cut` may cut one of
 * their erasures, which it counts.
 * @param failed  planes of the last die that have failed before in all blocks
 */
static void erase_with(const struct bed_config *config, uint8_t failed,
                       void (*cut)(struct bed *bed))
{
    struct bed *bed = bed_new(config);
    unsigned int cuts = 0;

    for (uint32_t i = 0; i < config->geometry.blocks; i++) {
        ftl_health_note_failure(&bed->ftl->space_floor, i,
                                config->geometry.dies - 1U, failed);
    }
    bed->ftl->has_work = true;
    bed_settle(bed);
    bed_fill(bed);
    bed_settle(bed);
    bed->ctx = &cuts;
    bed->after_event = cut;
    for (uint32_t i = 0; cuts != ERASURES; i++) {
        assert_int_not_equal(i, bed->ftl->layout.superblocks);
        ftl_due_move_soon(&bed->ftl->space_floor, i, FTL_CAUSE_LEVEL);
        bed->ftl->has_work = true;
        bed_settle(bed);
    }
    bed->after_event = NULL;
    bed_free(bed);
}

/*
 * The mount finds the originals in the blocks that are not erased yet, and the
 * copies elsewhere.  The originals have no parity any more, and the copies may
 * be erased first.
 */
static void test_of_a_half_erased_superblock_the_copies_count(void **state)
{
    (void)state;
    for (unsigned int i = 0; i < 2; i++) {
        struct bed_config config = bed_four_dies;

        config.checkpoint_superblocks = i == 0 ? 0 : 6;
        erase_with(&config, 0, cut_erasure);
    }
}

/* Whether a die's part of an erasure is cut between two planes. */
static bool is_torn(const struct bed *bed, uint32_t superblock)
{
    for (unsigned int die = 0; die < bed_four_dies.geometry.dies; die++) {
        const struct bed_die *at = &bed->dies[die];

        if (at->op != NULL && at->op->kind == NAND_OP_ERASE &&
            at->op->block[0] == superblock &&
            at->op->work.pending < bed_four_dies.geometry.planes) {
            return true;
        }
    }
    return false;
}

/* The first die's part of an erasure is cut between two planes, and the others
 * have not begun. */
static void tear_erasure(struct bed *bed)
{
    uint32_t victim = bed->ftl->collection.victim;
    unsigned int *cuts = bed->ctx;
    unsigned int dies;

    if (*cuts < ERASURES && victim != FTL_NOWHERE &&
        bed->ftl->superblocks[victim].state == FTL_SUPERBLOCK_ERASING &&
        count_erased(bed, victim, &dies) == 0 && is_torn(bed, victim)) {
        ++*cuts;
        for (unsigned int die = 0; die < bed_four_dies.geometry.dies; die++) {
            survive_death_before_erasures(bed, die);
        }
    }
}

/* A plane of a die is erased, and the other planes can still be read. */
static void test_of_a_superblock_that_is_erased_in_a_plane_the_copies_count(
    void **state)
{
    (void)state;
    for (unsigned int i = 0; i < 4; i++) {
        struct bed_config config = bed_four_dies;

        config.checkpoint_superblocks = i % 2 == 0 ? 0 : 6;
        config.is_untimed = i >= 2;
        erase_with(&config, 0, tear_erasure);
    }
}

/* Whether some dies have lost all of a superblock to an erasure, and others
 * nothing, if the power is cut now.  Dies that have failed do not count. */
static bool is_erased_in_whole_dies(const struct bed *bed, uint32_t superblock)
{
    struct bed *cut = bed_cut(bed, bed->events);
    unsigned int whole = 0, parts = 0, intact = 0;

    bed_start_mount(cut);
    while (cut->ftl->mount.phase == FTL_MOUNT_PROBE) {
        assert_true(bed_step(cut));
    }
    for (unsigned int die = 0; die < bed->config.geometry.dies; die++) {
        uint8_t good = ftl_good_planes(&bed->ftl->space_floor, superblock, die);
        uint8_t gone =
            ftl_mount_gone_planes(&cut->ftl->space_floor, superblock, die) &
            good;

        whole += good != 0 && gone == good;
        parts += gone != 0 && gone != good;
        intact += good != 0 && gone == 0;
    }
    bed_free(cut);
    return whole != 0 && parts == 0 && intact != 0;
}

/* Cut an erasure between two dies. */
static void cut_between_dies(struct bed *bed)
{
    uint32_t victim = bed->ftl->collection.victim;
    unsigned int *cuts = bed->ctx;

    if (*cuts < ERASURES && victim != FTL_NOWHERE &&
        bed->ftl->superblocks[victim].state == FTL_SUPERBLOCK_ERASING &&
        is_erased_in_whole_dies(bed, victim)) {
        *cuts = ERASURES;
        for (unsigned int die = 0; die < bed->config.geometry.dies; die++) {
            survive_death_before_erasures(bed, die);
        }
    }
}

/*
 * A die has failed in all blocks, so all superblocks look half erased until the
 * mount reads which planes have failed.  Then it must begin again: the copies
 * count, because only the originals are in a superblock that is half erased.
 */
static void test_copies_count_although_their_superblock_looks_half_erased(
    void **state)
{
    struct bed_config config = bed_four_dies;

    (void)state;
    config.geometry.dies = 6;
    config.checkpoint_superblocks = 0;
    config.is_untimed = true;
    config.seed = 2; /* No factory mark is where the copies are. */
    erase_with(&config, 0xf, cut_between_dies);
}

/* ---- A trim page that the scan has found, and that cannot be read then. */

enum { PLANE_DIE = 3, TRIMMED = 8 };

/*
 * A plane of a die has failed before the first superblock was opened, so it is
 * in no sum.  The page of the last trims is in the same plane of another die.
 * All stripes are complete.
 * @param die  set to the page's die
 */
static struct bed *new_trimmed(uint32_t *die)
{
    struct bed_config config = bed_four_dies;
    const struct ftl_layout *layout;
    struct bed *bed;
    uint32_t place;

    config.checkpoint_superblocks = 0;
    bed = bed_new(&config);
    layout = &bed->ftl->layout;
    for (uint32_t i = 0; i < bed_four_dies.geometry.blocks; i++) {
        ftl_health_note_failure(&bed->ftl->space_floor, i, PLANE_DIE, BIT(0));
    }
    bed->ftl->has_work = true;
    bed_settle(bed);
    bed_fill(bed);
    do {
        bed_write(bed, 0, BED_SECTORS);
        bed_flush(bed);
        bed_trim(bed, 0, TRIMMED * BED_SECTORS);
        bed_flush(bed);
        place = bed->ftl->map[bed->units];
        *die = ftl_place_row(layout, place) % bed_four_dies.geometry.dies;
    } while (*die == PLANE_DIE);
    assert_int_equal(layout->units[place % layout->row_units].plane, 0);
    complete_stripes(bed);
    return bed;
}

/* What is on the page's die can be rebuilt, but not before the mount knows the
 * plane that is in no sum.  It reads the trim page before the page that names
 * this plane. */
static void check_trim_page(bool is_death)
{
    uint32_t die;
    struct bed *bed = new_trimmed(&die);
    struct bed *cut = bed_cut(bed, bed->events);
    struct nand_injection fault =
        fault_once(NAND_OP_READ, NAND_EFFECT_UNCORRECTABLE, 0);

    bed_start_mount(cut);
    while (cut->ftl->mount.phase != FTL_MOUNT_PAGES) {
        assert_true(bed_step(cut));
    }
    if (is_death) {
        inject_death(cut, NAND_OP_READ, die, 0);
    } else {
        fault.die = (int32_t)die;
        fault.plane = 0;
        inject_fault(cut, &fault);
    }
    while (ftl_state(cut->ftl) == FTL_MOUNTING) {
        assert_true(bed_step(cut));
    }
    assert_int_equal(ftl_state(cut->ftl), FTL_READY);
    bed_check(cut);
    bed_free(cut);
    bed_free(bed);
}

static void test_trims_stay_if_the_die_of_their_page_dies_after_the_scan(
    void **state)
{
    (void)state;
    check_trim_page(true);
}

static void test_trims_stay_if_one_read_of_their_page_fails_after_the_scan(
    void **state)
{
    (void)state;
    check_trim_page(false);
}

/* ---- A die that dies, and a unit of another die that cannot be read then. */

static void mount_until(struct bed *bed, enum ftl_mount_phase phase)
{
    while (bed->ftl->mount.phase != phase) {
        assert_true(bed_step(bed));
    }
}

/* Let the die of a place die at the next read of the place's row.  A death at
 * an earlier read would end this pass of a mount before it reads the row. */
static void inject_death_at(struct bed *bed, uint32_t place)
{
    const struct ftl_layout *layout = &bed->ftl->layout;
    uint32_t row = ftl_place_row(layout, place);
    struct nand_injection death = fault_once(NAND_OP_READ, NAND_EFFECT_DIE, 0);

    death.die = (int32_t)(row % layout->geometry.dies);
    death.block = (int32_t)ftl_place_superblock(layout, place);
    death.wordline =
        (int32_t)(row % layout->superblock_rows / layout->geometry.dies);
    inject_fault(bed, &death);
}

/*
 * The newest version of a unit is in a complete stripe, in a row that may be
 * torn.  From a phase of the mount on, one unit of the stripe cannot be read,
 * and in the same or a later phase a die dies.  One of the two is the newest
 * version, and the other one is needed to rebuild it.  So this pass cannot
 * rebuild it, but it can be read in the next one.
 * @param is_of_die  the newest version is on the die that dies, at the read of
 *                   this version
 */
static void check_unit_beside_death(enum ftl_mount_phase unreadable,
                                    enum ftl_mount_phase death, bool is_of_die)
{
    struct nand_injection fault =
        fault_anywhere(NAND_OP_READ, NAND_EFFECT_UNCORRECTABLE);
    struct bed_config config = bed_four_dies;
    uint32_t die, other, place;
    struct bed *bed, *cut;

    config.checkpoint_superblocks = 0;
    bed = bed_new(&config);
    bed_fill(bed);
    bed_settle(bed);
    bed_write(bed, 0, BED_SECTORS);
    bed_flush(bed);
    bed_settle(bed);
    complete_stripes(bed);
    place = bed->ftl->map[0];
    die = ftl_place_row(&bed->ftl->layout, place) % bed_four_dies.geometry.dies;
    other = (die + 1) % bed_four_dies.geometry.dies;
    fault.die = (int32_t)(is_of_die ? other : die);
    fault.plane =
        bed->ftl->layout.units[place % bed->ftl->layout.row_units].plane;
    fault.block = (int32_t)ftl_place_superblock(&bed->ftl->layout, place);
    cut = bed_cut(bed, bed->events);
    bed_start_mount(cut);
    mount_until(cut, unreadable);
    inject_fault(cut, &fault);
    mount_until(cut, death);
    if (is_of_die) {
        inject_death_at(cut, place);
    } else {
        inject_death(cut, NAND_OP_READ, other, 0);
    }
    while (cut->ftl->mount.phase == death) {
        assert_true(bed_step(cut));
    }
    assert_int_equal(ftl_dead_dies(cut->ftl), 1);
    assert_int_equal(ftl_counters(cut->ftl)->read_errors != 0, is_of_die);
    nand_array_clear_injections(cut->array);
    while (ftl_state(cut->ftl) == FTL_MOUNTING) {
        assert_true(bed_step(cut));
    }
    assert_int_equal(ftl_state(cut->ftl), FTL_READY);
    bed_check(cut);
    bed_free(cut);
    bed_free(bed);
}

/* The mount does not ignore the unit for the whole start. */
static void test_a_unit_that_cannot_be_copied_beside_a_death_still_counts(
    void **state)
{
    (void)state;
    check_unit_beside_death(FTL_MOUNT_SETTLE, FTL_MOUNT_SETTLE, true);
}

/* The mount does not go on without the unit. */
static void test_a_unit_that_cannot_be_repaired_beside_a_death_still_counts(
    void **state)
{
    (void)state;
    check_unit_beside_death(FTL_MOUNT_SCAN, FTL_MOUNT_REPAIR, false);
}

/* ---- A dead die that is in no sum of a stripe. */

/*
 * The factory has marked the last die's planes in all blocks but the first one.
 * So when this die is dead, and a unit of another die cannot be read in such a
 * block, this is the only loss of the stripe: a mount and reads of hosts
 * rebuild it.
 */
static void test_a_dead_die_is_no_loss_of_stripes_without_it(void **state)
{
    enum { LAST_DIE = 5 };
    struct nand_injection fault =
        fault_anywhere(NAND_OP_READ, NAND_EFFECT_UNCORRECTABLE);
    struct bed_config config = bed_four_dies;
    struct bed *bed, *cut;
    uint32_t place;

    (void)state;
    config.geometry.dies = LAST_DIE + 1;
    config.last_die_blocks = 1;
    config.checkpoint_superblocks = 0;
    bed = bed_new(&config);
    bed_fill(bed);
    bed_use(bed, 3, 100);
    bed_wait_all(bed);
    bed_flush(bed);
    bed_settle(bed);
    bed_stop(bed);
    place = bed->ftl->map[300];
    fault.block = (int32_t)ftl_place_superblock(&bed->ftl->layout, place);
    fault.die = (int32_t)(ftl_place_row(&bed->ftl->layout, place) %
                          config.geometry.dies);
    assert_int_not_equal(fault.block, 0);
    cut = bed_cut_saved(bed, 3);
    cut->changes_dead_dies = true;
    cut->dead_dies = BIT(LAST_DIE);
    bed_start_mount(cut);
    inject_fault(cut, &fault);
    while (ftl_state(cut->ftl) == FTL_MOUNTING) {
        assert_true(bed_step(cut));
    }
    assert_int_equal(ftl_state(cut->ftl), FTL_READY);
    assert_int_equal(ftl_dead_dies(cut->ftl), 1);
    bed_check(cut);
    bed_free(cut);
    bed_free(bed);
}

/* ---- A superblock in which all planes of a die have failed. */

enum { GONE_DIE = 1, GONE_BLOCKS = 6 };

struct moved {
    uint32_t *map;     /* before the superblock is moved */
    uint32_t compared; /* units with an original and a copy */
};

/* Whether the first stripe of a place's superblock is complete, because the
 * place is in a later one. */
static bool is_stripe_complete(const struct ftl *ftl, uint32_t place)
{
    return ftl_place_row(&ftl->layout, place) % ftl->layout.superblock_rows >=
           ftl->layout.geometry.dies;
}

/* In the first superblocks, all planes of a die have failed.  Cut
 * the power when units of such a superblock have copies in an intact one: after
 * the scan, the mount must have the originals, which have parity. */
static void check_originals_of_victim(struct bed *bed)
{
    const struct ftl *ftl = bed->ftl;
    struct moved *moved = bed->ctx;
    uint32_t victim = ftl->collection.victim;
    struct bed *cut = NULL;

    if (victim == FTL_NOWHERE || victim >= GONE_BLOCKS ||
        moved->compared >= 8 ||
        ftl->superblocks[victim].state != FTL_SUPERBLOCK_CLOSED) {
        return;
    }
    for (uint32_t i = 0; i < bed->units; i++) {
        uint32_t before = ftl_entry_place(moved->map[i]);
        uint32_t now = ftl_entry_place(ftl->map[i]);

        if (before == FTL_NOWHERE || now == FTL_NOWHERE || before == now ||
            ftl_place_superblock(&ftl->layout, before) != victim ||
            !is_stripe_complete(ftl, now) ||
            ftl_place_superblock(&ftl->layout, now) < GONE_BLOCKS) {
            continue;
        }
        if (cut == NULL) {
            cut = bed_cut(bed, bed->events);
            bed_start_mount(cut);
            while (cut->ftl->mount.phase < FTL_MOUNT_DROP) {
                assert_true(bed_step(cut));
            }
        }
        assert_int_equal(cut->ftl->map[i], before);
        moved->compared++;
    }
    if (cut != NULL) {
        bed_free(cut);
    }
}

static void test_a_superblock_without_a_die_is_not_half_erased(void **state)
{
    struct moved moved = {.compared = 0};
    struct bed_config config = bed_four_dies;
    struct bed *bed;

    (void)state;
    config.geometry.dies = 6;
    config.checkpoint_superblocks = 0;
    bed = bed_new(&config);
    for (uint32_t i = 0; i < GONE_BLOCKS; i++) {
        ftl_health_note_failure(&bed->ftl->space_floor, i, GONE_DIE, 0xf);
    }
    bed->ftl->has_work = true;
    bed_settle(bed);
    bed_fill(bed);
    bed_settle(bed);
    complete_stripes(bed);
    moved.map = calloc(bed->units, sizeof(moved.map[0]));
    assert_non_null(moved.map);
    bed->ctx = &moved;
    bed->after_event = check_originals_of_victim;
    for (uint32_t i = 0; i < GONE_BLOCKS; i++) {
        memcpy(moved.map, bed->ftl->map, bed->units * sizeof(moved.map[0]));
        ftl_due_move_soon(&bed->ftl->space_floor, i, FTL_CAUSE_LEVEL);
        bed->ftl->has_work = true;
        bed_settle(bed);
    }
    assert_int_not_equal(moved.compared, 0);
    bed->after_event = NULL;
    free(moved.map);
    bed_free(bed);
}

/* ---- Rows of a dead die that are rebuilt, but not in any plane without doubt.
 */

/* A drive whose planes have failed: `planes[die]` of each die in all blocks. */
static struct bed *new_without_planes(const uint8_t *planes)
{
    struct bed_config config = bed_four_dies;
    struct bed *bed;

    config.geometry.dies = 6;
    config.geometry.wordlines = 3;
    config.geometry.blocks = 32;
    config.checkpoint_superblocks = 0;
    config.seed = 2; /* No factory mark moves parity to dies 4 and 5. */
    bed = bed_new(&config);
    for (uint32_t i = 0; i < config.geometry.blocks; i++) {
        for (uint32_t die = 0; die < config.geometry.dies; die++) {
            ftl_health_note_failure(&bed->ftl->space_floor, i, die,
                                    planes[die]);
        }
    }
    bed->ftl->has_work = true;
    bed_settle(bed);
    assert_false(ftl_is_read_only(bed->ftl));
    bed_fill(bed);
    bed_use(bed, 3, 100);
    bed_wait_all(bed);
    bed_flush(bed);
    bed_settle(bed);
    bed_stop(bed);
    return bed;
}

/*
 * In each plane of the dead die's rows, one unit of the stripe is left out.  So
 * no unit shows which number a row has, and only a second pass of the mount,
 * which knows the planes, can tell.  With fewer wordlines than dies, the dead
 * die has no parity, whose units can never be rebuilt and so would have the
 * mount begin again in any case.
 */
static void test_a_mount_begins_again_if_no_unit_shows_the_row_number(
    void **state)
{
    static const uint8_t all_of_a_die[] = {0, 0, 0, 0xf, 0, 0};
    static const uint8_t one_of_each[] = {1, 2, 4, 8, 0, 0};
    struct bed *bed = new_without_planes(all_of_a_die);

    (void)state;
    check_without_die(bed, 4);
    check_without_die(bed, 5);
    bed_free(bed);
    bed = new_without_planes(one_of_each);
    check_without_die(bed, 4);
    bed_free(bed);
}
