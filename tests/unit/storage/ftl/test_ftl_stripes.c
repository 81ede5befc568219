/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Stripes of which more is missing than parity can rebuild.  The sum of the
 * units that are left may have system bytes that look valid, but name another
 * unit.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "storage/ftl/state.h"
#include "storage/ftl/space/space.h"
#include "tests/unit/storage/ftl/ftl_faults.h"

enum { DIES = 4, PLANES = 4, WORDLINES = 4 };

/* Rows of four units; stripes of three rows of data and one of parity. */
static const struct bed_config small = {
    .profile = "slc",
    .geometry = {.channels = 1,
                 .dies = DIES,
                 .planes = PLANES,
                 .units = 1,
                 .pages = 1,
                 .blocks = 12,
                 .wordlines = WORDLINES},
    .logical_units = 120,
    .buffer_units = 24,
    .seed = 1,
};

static void write_units(struct bed *bed, uint32_t first, uint32_t count)
{
    for (uint32_t i = first; i < first + count; i++) {
        bed_write(bed, (uint64_t)i * BED_SECTORS, BED_SECTORS);
    }
}

/* ---- A failed plane and an unreadable unit of another die. */

/* Make reads of a plane of a die fail. */
static void lose_plane(struct bed *bed, int die, int plane)
{
    struct nand_injection fault =
        fault_anywhere(NAND_OP_READ, NAND_EFFECT_UNCORRECTABLE);

    fault.die = die;
    fault.plane = plane;
    inject_fault(bed, &fault);
}

/* Read each unit. @return how many cannot be read; the others must be right */
static unsigned int count_lost(struct bed *bed, uint32_t units)
{
    unsigned int lost = 0;

    for (uint32_t i = 0; i < units; i++) {
        struct bed_io *io =
            bed_submit_read(bed, (uint64_t)i * BED_SECTORS, BED_SECTORS);
        enum media_status status = bed_wait(bed, io);

        if (status == MEDIA_OK) {
            bed_check_read(bed, io);
        } else {
            assert_int_equal(status, MEDIA_READ_ERROR);
            lost++;
        }
    }
    return lost;
}

/*
 * A plane fails after its first row was programmed, so this row is in the
 * parity of its stripe.  If neither this row nor that of another die can be
 * read, both are lost: the sum without the failed plane must not be taken for
 * contents.
 */
static void test_a_failed_plane_and_another_die_are_a_read_error(void **state)
{
    unsigned int lost = 0;

    (void)state;
    for (int other = 0; other < DIES; other++) {
        struct nand_injection failure =
            fault_once(NAND_OP_PROGRAM, NAND_EFFECT_FAIL, 0);
        struct bed *bed;

        if (other == 1) {
            continue;
        }
        bed = bed_new_seeded(&small, 2);
        write_units(bed, 0, 12); /* the first stripe */
        bed_flush(bed);
        bed_settle(bed);
        assert_int_equal(ftl_counters(bed->ftl)->parity_units, PLANES);
        failure.die = 1;
        failure.plane = 2;
        inject_fault(bed, &failure);
        lose_plane(bed, 1, 2);
        lose_plane(bed, other, 2);
        write_units(bed, 12, 12);
        bed_settle(bed);
        assert_int_equal(ftl_counters(bed->ftl)->program_errors, 1);
        lost += count_lost(bed, 12);
        bed_free(bed);
    }
    assert_in_range(lost, 3, 6);
}

/* ---- Two units of the same number beside an unreadable one. */

enum { FIRST = 0, OTHERS = PLANES, FURTHER = 2 * PLANES, NUMBERS = 8 * PLANES };
enum { ALL_PLANES = -1 };

static uint32_t die_of(const struct bed *bed, uint32_t unit)
{
    return ftl_place_row(&bed->ftl->layout, bed->ftl->map[unit]) % DIES;
}

/* A row of its own. */
static void write_row(struct bed *bed, uint32_t first)
{
    write_units(bed, first, PLANES);
    bed_flush(bed);
    bed_settle(bed);
}

/* A stripe with two versions of the same units, and others in a third row: the
 * dies of these rows, and where they are. */
struct same_number {
    struct bed *bed;
    uint32_t older, newer, others; /* dies */
    int32_t superblock, wordline;
};

/* @param second  the first unit of the second row */
static struct same_number make_same_number(uint32_t second)
{
    struct same_number made = {.bed = bed_new_seeded(&small, 3)};
    struct bed *bed = made.bed;
    uint32_t row, stripe;

    write_row(bed, FIRST);
    made.older = die_of(bed, FIRST);
    stripe = ftl_place_row(&bed->ftl->layout, bed->ftl->map[FIRST]) / DIES;
    write_row(bed, second);
    made.newer = die_of(bed, second);
    write_row(bed, OTHERS);
    made.others = die_of(bed, OTHERS);
    row = ftl_place_row(&bed->ftl->layout, bed->ftl->map[OTHERS]);
    assert_int_equal(row / DIES, stripe);
    made.wordline = (int32_t)(stripe % WORDLINES);
    made.superblock =
        (int32_t)ftl_place_superblock(&bed->ftl->layout, bed->ftl->map[OTHERS]);
    write_units(bed, FURTHER, NUMBERS - FURTHER); /* two stripes */
    bed_flush(bed);
    bed_settle(bed);
    assert_int_equal(ftl_counters(bed->ftl)->parity_units, 3 * PLANES);
    bed->may_lose = true;
    return made;
}

/* Reads of a row of the stripe fail.
 * @param plane  only in this one, or ALL_PLANES */
static void make_unreadable(const struct same_number *made, uint32_t die,
                            int plane)
{
    struct nand_injection fault =
        fault_anywhere(NAND_OP_READ, NAND_EFFECT_UNCORRECTABLE);

    fault.die = (int32_t)die;
    fault.block = made->superblock;
    fault.wordline = made->wordline;
    if (plane != ALL_PLANES) {
        fault.plane = plane;
    }
    inject_fault(made->bed, &fault);
}

/* Let a die die, and a read of a unit that it has find this out. */
static void find_death(struct bed *bed, uint32_t die)
{
    struct bed_io *io;
    uint32_t unit = FURTHER;

    while (unit < NUMBERS && die_of(bed, unit) != die) {
        unit++;
    }
    assert_int_not_equal(unit, NUMBERS);
    inject_death(bed, NAND_OP_READ, die, 0);
    io = bed_submit_read(bed, (uint64_t)unit * BED_SECTORS, BED_SECTORS);
    if (bed_wait(bed, io) == MEDIA_OK) {
        bed_check_read(bed, io);
    }
    assert_true(bed->ftl->dies.is_dead[die]);
}

/*
 * Two versions of each unit are in the same plane of two dies of a stripe.  One
 * of the dies dies, and then the other one, or its planes fail.  The rest of
 * the stripe cannot be read either: its sum without the two versions has the
 * right number, but the contents of all three.
 * @param is_plane  the planes of the other die fail
 */
static void check_same_number(bool is_plane)
{
    struct same_number made = make_same_number(FIRST);
    struct bed *bed = made.bed;

    make_unreadable(&made, made.others, ALL_PLANES);
    find_death(bed, made.older);
    if (is_plane) {
        ftl_health_note_failure(&bed->ftl->space_floor,
                                (uint32_t)made.superblock, made.newer,
                                BIT(PLANES) - 1);
    } else {
        find_death(bed, made.newer);
    }
    /* The newer versions are lost with their die, if they were not moved
     * before. */
    assert_in_range(count_lost(bed, FURTHER), PLANES, 2 * PLANES);
    bed_free(bed);
}

static void test_units_of_the_same_number_do_not_rebuild_a_third(void **state)
{
    (void)state;
    check_same_number(false);
    check_same_number(true);
}

/* ---- The same with two failed planes, while all dies answer. */

static void fail_planes(const struct same_number *made)
{
    ftl_health_note_failure(&made->bed->ftl->space_floor,
                            (uint32_t)made->superblock, made->older,
                            BIT(PLANES) - 1);
    ftl_health_note_failure(&made->bed->ftl->space_floor,
                            (uint32_t)made->superblock, made->newer,
                            BIT(PLANES) - 1);
}

/* The layer knows of no row, as if all had been programmed before the start. */
static void forget_rows(const struct same_number *made)
{
    made->bed->ftl->first_noted = UINT64_MAX;
}

/* Neither version of a unit can be read, and one unit of the third row cannot:
 * the sum without the versions has the right number and three contents. */
static void check_unreadable_versions(bool is_noted)
{
    for (int plane = ALL_PLANES; plane < PLANES; plane++) {
        struct same_number made = make_same_number(FIRST);

        if (!is_noted) {
            forget_rows(&made);
        }
        make_unreadable(&made, made.older, ALL_PLANES);
        make_unreadable(&made, made.newer, ALL_PLANES);
        make_unreadable(&made, made.others, plane);
        fail_planes(&made);
        assert_int_equal(count_lost(made.bed, FURTHER),
                         plane == ALL_PLANES ? 2 * PLANES : PLANES + 1);
        bed_free(made.bed);
    }
}

static void test_units_of_failed_planes_do_not_rebuild_a_third(void **state)
{
    (void)state;
    check_unreadable_versions(true);
    check_unreadable_versions(false);
}

/* Let the planes of two readable rows fail, and make the units of a third one,
 * or one of them, unreadable. @return how many units are lost */
static unsigned int lose_beside_failed(uint32_t second, int plane,
                                       bool is_noted)
{
    struct same_number made = make_same_number(second);
    unsigned int lost;

    if (!is_noted) {
        forget_rows(&made);
    }
    make_unreadable(&made, made.others, plane);
    fail_planes(&made);
    lost = count_lost(made.bed, FURTHER);
    bed_free(made.bed);
    return lost;
}

/* The sum is complete.  That this is so is known from the number with which the
 * row was programmed, or which another unit of it has; or, if neither is known,
 * from the numbers of the units in failed planes, if these differ. */
static void test_readable_units_of_failed_planes_rebuild_a_third(void **state)
{
    (void)state;
    for (int plane = ALL_PLANES; plane < PLANES; plane++) {
        assert_int_equal(lose_beside_failed(FIRST, plane, true), 0);
    }
    for (int plane = 0; plane < PLANES; plane++) {
        assert_int_equal(lose_beside_failed(FIRST, plane, false), 0);
    }
    assert_int_equal(lose_beside_failed(FURTHER, ALL_PLANES, false), 0);
    assert_int_equal(lose_beside_failed(FIRST, ALL_PLANES, false), PLANES);
}

/* Planes of two dies cannot be erased, so they are in no sum of what is written
 * then.  Nothing is lost with another die. */
static void test_a_die_dies_beside_planes_that_were_not_erased(void **state)
{
    struct nand_injection failure =
        fault_anywhere(NAND_OP_ERASE, NAND_EFFECT_FAIL);
    struct nand_injection fault =
        fault_anywhere(NAND_OP_READ, NAND_EFFECT_UNCORRECTABLE);

    (void)state;
    for (int is_readable = 0; is_readable < 2; is_readable++) {
        struct bed *bed = bed_new_seeded(&small, 4);

        failure.plane = 1;
        fault.plane = 1;
        for (int die = 1; die < 3; die++) {
            failure.die = die;
            inject_fault(bed, &failure);
            fault.die = die;
            if (!is_readable) {
                inject_fault(bed, &fault);
            }
        }
        for (unsigned int i = 0; i < 6; i++) {
            bed_fill(bed);
        }
        bed_flush(bed);
        bed_settle(bed);
        inject_death(bed, NAND_OP_READ, 0, 0);
        bed_check(bed);
        assert_true(bed->ftl->dies.is_dead[0]);
        bed_free(bed);
    }
}

/* ---- Row numbers and sums that are not to be trusted. */

/* A unit is moved for the last time before it would be given up, and beside two
 * failed planes.  If one read fails, also that of the row number, the flash is
 * intact, so the unit is not lost. */
static void test_a_failed_read_of_the_row_number_loses_nothing(void **state)
{
    enum { READS = 24 }; /* more than the superblock's moves need */

    (void)state;
    for (uint32_t read = 1; read < READS; read++) {
        struct same_number made = make_same_number(FIRST);
        struct ftl *ftl = made.bed->ftl;

        forget_rows(&made);
        make_unreadable(&made, made.others, 0);
        fail_planes(&made);
        made.bed->reads_until_error = read;
        ftl_superblock_end(&ftl->space_floor, (uint32_t)made.superblock);
        ftl->superblocks[made.superblock].retries = FTL_STUCK_RETRIES;
        ftl_due_move_soon(&ftl->space_floor, (uint32_t)made.superblock,
                          FTL_CAUSE_LEVEL);
        ftl->has_work = true;
        bed_settle(made.bed);
        assert_int_equal(ftl_counters(ftl)->lost_units, 0);
        made.bed->reads_until_error = 0;
        assert_int_equal(count_lost(made.bed, FURTHER), 0);
        bed_free(made.bed);
    }
}

/* The sum of a stripe that is not complete has two units of the same number,
 * in planes that have failed since.  If these cannot be read, no third unit is
 * rebuilt. */
static void test_unreadable_units_of_an_open_stripe_rebuild_nothing(
    void **state)
{
    struct bed_config config = small;
    struct same_number made = {.older = 1, .newer = 2, .others = 3};

    (void)state;
    config.geometry.dies = 2 * DIES;
    made.bed = bed_new_seeded(&config, 3);
    write_row(made.bed, FIRST);
    write_row(made.bed, FIRST);
    write_row(made.bed, OTHERS);
    assert_int_equal(made.bed->ftl->map[OTHERS] / PLANES, made.others);
    assert_non_null(ftl_parity_find(&made.bed->ftl->rows_floor, made.others));
    made.bed->may_lose = true;
    make_unreadable(&made, made.older, ALL_PLANES);
    make_unreadable(&made, made.newer, ALL_PLANES);
    make_unreadable(&made, made.others, 1);
    fail_planes(&made);
    assert_int_equal(count_lost(made.bed, FURTHER), PLANES + 1);
    bed_free(made.bed);
}

/* ---- Two unreadable units of a stripe that no checkpoint names. */

/* Start after a power cut, while a plane of two dies cannot be read. */
static struct bed *mount_without_planes(const struct bed *bed, int one,
                                        int other)
{
    struct bed *cut = bed_cut(bed, 1);

    bed_start_mount(cut);
    lose_plane(cut, one, 2);
    lose_plane(cut, other, 2);
    bed_settle(cut);
    assert_int_equal(ftl_state(cut->ftl), FTL_READY);
    return cut;
}

/*
 * The latest trim page says that the logical units have contents.  So units of
 * which a mount finds no contents must not read as zeroes, also after the next
 * start, until hosts write or trim them.
 */
static void test_contents_that_a_trim_page_names_do_not_become_zeroes(
    void **state)
{
    unsigned int lost = 0;

    (void)state;
    for (int one = 0; one < DIES; one++) {
        for (int other = one + 1; other < DIES; other++) {
            struct bed *bed = bed_new_seeded(&small, 3), *cut, *next;

            write_units(bed, 0, 13); /* one more than a stripe */
            bed_flush(bed);
            bed_trim(bed, 12 * BED_SECTORS, BED_SECTORS);
            bed_flush(bed);
            cut = mount_without_planes(bed, one, other);
            nand_array_clear_injections(cut->array);
            lost += count_lost(cut, 13);
            bed_flush(cut);
            next = bed_cut(cut, 2);
            bed_mount(next);
            assert_int_equal(count_lost(next, 13), count_lost(cut, 13));
            write_units(next, 0, 12);
            bed_check(next);
            bed_free(next);
            bed_free(cut);
            bed_free(bed);
        }
    }
    /* Two units, or one if the other unit is the parity. */
    assert_int_equal(lost, 9);
}

/* ---- A superblock that is being erased when the power is cut. */

/* Complete all stripes, because parity does not protect the contents of
 * incomplete stripes against the death of a die. */
static void complete_stripes(struct bed *bed)
{
    while (!ftl_stripes_are_complete(bed->ftl)) {
        ftl_complete_stripes(bed->ftl);
        bed_settle(bed);
    }
}

/* The dies that have erased a block of the superblock. */
static uint8_t find_erased(const struct bed *bed, uint32_t superblock,
                           const uint32_t before[DIES])
{
    uint8_t dies = 0;

    for (unsigned int die = 0; die < DIES; die++) {
        if (nand_array_block(bed->array, 0, die, 0, superblock)->number !=
            before[die]) {
            dies |= (uint8_t)BIT(die);
        }
    }
    return dies;
}

/* Only these dies erase the superblock, which holds nothing valid. */
static void erase_half(struct bed *bed, uint32_t superblock, uint8_t dies)
{
    uint32_t before[DIES];

    for (unsigned int die = 0; die < DIES; die++) {
        before[die] =
            nand_array_block(bed->array, 0, die, 0, superblock)->number;
    }
    bed->held_dies = (uint8_t)(~dies & (BIT(DIES) - 1));
    ftl_due_move_soon(&bed->ftl->space_floor, superblock, FTL_CAUSE_LEVEL);
    bed->ftl->has_work = true;
    bed_settle(bed);
    assert_int_equal(find_erased(bed, superblock, before), dies);
}

/* One die has died when the power comes back. */
static void check_mount_without(const struct bed *bed, unsigned int die)
{
    struct bed *cut = bed_cut(bed, die);

    cut->changes_dead_dies = true;
    cut->dead_dies = (uint8_t)BIT(die);
    bed_mount(cut);
    bed_check(cut);
    assert_int_equal(ftl_dead_dies(cut->ftl), 1);
    bed_free(cut);
}

/* Dies 0 to 3 have or have not erased the superblock. */
static void check_half_erased(uint8_t dies)
{
    struct bed *bed = bed_new_seeded(&small, dies);
    const uint32_t units = 3 * PLANES * WORDLINES; /* of a superblock */

    /* The first superblock has units whose numbers are far apart, so that the
     * sum of two or three of them is one that was never written. */
    for (uint32_t i = 0; i < units; i++) {
        write_units(bed, i % 3 * 33 + i / 3, 1);
    }
    bed_flush(bed);
    for (uint32_t i = 0; i < units; i++) {
        write_units(bed, i % 3 * 33 + i / 3, 1);
    }
    bed_flush(bed);
    bed_settle(bed);
    complete_stripes(bed);
    erase_half(bed, 0, dies);
    for (unsigned int die = 0; die < DIES; die++) {
        if ((dies & BIT(die)) == 0) {
            check_mount_without(bed, die);
        }
    }
    bed_free(bed);
}

static void test_nothing_is_rebuilt_from_a_stripe_that_is_being_erased(
    void **state)
{
    (void)state;
    for (uint8_t dies = 1; dies < BIT(DIES) - 1; dies++) {
        check_half_erased(dies);
    }
}

/* ---- Stripes that are completed before the power goes off. */

/*
 * One die lags behind: the parity of the stripe is on flash before a row of
 * padding is.  While this row is being programmed, the stripe is not complete,
 * because nothing can be rebuilt from it.
 */
static void test_a_stripe_is_complete_when_all_its_rows_are_on_flash(
    void **state)
{
    (void)state;
    for (unsigned int lagging = 0; lagging < DIES; lagging++) {
        struct bed *bed = bed_new_seeded(&small, 1);
        struct bed *cut;

        write_units(bed, 0, PLANES); /* the row of die 1 */
        bed_flush(bed);
        bed_settle(bed);
        assert_false(ftl_stripes_are_complete(bed->ftl));
        bed->held_dies = (uint8_t)BIT(lagging);
        ftl_complete_stripes(bed->ftl);
        bed_settle(bed);
        /* The row of die 1 is on flash already. */
        assert_int_equal(ftl_stripes_are_complete(bed->ftl), lagging == 1);
        bed->held_dies = 0;
        bed_settle(bed);
        assert_true(ftl_stripes_are_complete(bed->ftl));
        cut = bed_cut_saved(bed, lagging);
        cut->changes_dead_dies = true;
        cut->dead_dies = BIT(1);
        bed_mount(cut);
        bed_check(cut);
        bed_free(cut);
        bed_free(bed);
    }
}

/* ---- Programs that fail again and again beside the copies of a mount. */

/* Mount while each third program fails. @return how often the mount has begun
 * again before it erased originals */
static unsigned int mount_with_failures(struct bed *bed)
{
    uint64_t end = bed->events + 100000, seen = 0;
    unsigned int passes = 0;
    uint8_t phase;

    bed_start_mount(bed);
    while (ftl_state(bed->ftl) == FTL_MOUNTING) {
        phase = bed->ftl->mount.phase;
        if (bed->programs >= seen + 3) {
            seen = bed->programs;
            bed->program_errors = 1;
        }
        if (!bed_step(bed)) {
            bed->now_us = MAX(bed->now_us + 1, bed->deadline_us);
        }
        passes += phase == FTL_MOUNT_CLEAR &&
                  bed->ftl->mount.phase == FTL_MOUNT_PROBE;
        assert_true(bed->events < end);
    }
    bed->program_errors = 0;
    return passes;
}

static void test_a_mount_copies_again_a_few_times_only(void **state)
{
    struct bed_config config = small;
    unsigned int passes = 0;

    (void)state;
    config.geometry.blocks = 60;
    for (uint64_t seed = 1; seed < 6; seed++) {
        struct bed *bed = bed_new_seeded(&config, seed), *cut;
        unsigned int needed;

        write_units(bed, 0, 100);
        bed_flush(bed);
        write_units(bed, 0, 30);
        cut = bed_cut(bed, seed);
        needed = mount_with_failures(cut);
        passes = MAX(passes, needed);
        assert_int_equal(ftl_state(cut->ftl), FTL_READY);
        assert_false(ftl_is_read_only(cut->ftl));
        bed_settle(cut);
        bed_check(cut);
        bed_free(cut);
        bed_free(bed);
    }
    assert_int_equal(passes, 4);
}
