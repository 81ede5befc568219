/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Units that become unreadable: a mount must end, must find what can be
 * rebuilt, and must never return older contents of a unit as its contents.
 *
 * The tests look into the map to find out which place of the flash to damage.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "storage/ftl/background/ftl_checkpoint.h"
#include "storage/ftl/state.h"
#include "storage/ftl/space/ftl_findings.h"
#include "storage/ftl/map/map.h"
#include "lib/random.h"
#include "tests/unit/storage/ftl/ftl_faults.h"

enum { MOUNT_STEPS = 1000000 };

/* Two dies have no parity, four have. */
static struct bed_config config_of(uint8_t dies)
{
    return (struct bed_config){
        .profile = "slc",
        .geometry = {.channels = 1,
                     .dies = dies,
                     .planes = 4,
                     .units = 1,
                     .pages = 1,
                     .blocks = 24,
                     .wordlines = 4},
        .logical_units = 150,
        .buffer_units = 32,
        .checkpoint_superblocks = 4,
        .seed = 3,
    };
}

/* From now on, the unit at a place cannot be read. */
static struct nand_injection damage_of(const struct bed *bed, uint32_t place)
{
    const struct ftl_layout *layout = &bed->ftl->layout;
    struct nand_injection fault =
        fault_anywhere(NAND_OP_READ, NAND_EFFECT_UNCORRECTABLE);
    struct ftl_flash_unit unit;
    struct ftl_flash_op op;

    ftl_layout_row(layout, ftl_place_row(layout, place), &op);
    ftl_layout_unit(layout, place % layout->row_units, &unit);
    fault.die = op.die;
    fault.block = op.block;
    fault.wordline = op.wordline;
    fault.plane = unit.plane;
    fault.page = unit.page;
    fault.unit = unit.unit;
    return fault;
}

/* Mount, with one unit that cannot be read. */
static void mount_with(struct bed *bed, const struct nand_injection *fault)
{
    unsigned int steps = 0;

    bed_start_mount(bed);
    if (fault != NULL) {
        inject_fault(bed, fault);
    }
    while (ftl_state(bed->ftl) == FTL_MOUNTING) {
        assert_true(bed_step(bed));
        if (++steps == MOUNT_STEPS) {
            fail_msg("The mount does not end.");
        }
    }
    assert_int_equal(ftl_state(bed->ftl), FTL_READY);
}

static enum media_status read_unit(struct bed *bed, uint32_t unit)
{
    return bed_wait(
        bed, bed_submit_read(bed, (uint64_t)unit * BED_SECTORS, BED_SECTORS));
}

/* ---- Pages that a checkpoint names. */

static void test_a_mount_ends_when_a_page_of_the_checkpoint_is_unreadable(
    void **state)
{
    (void)state;
    for (uint8_t dies = 2; dies <= 4; dies += 2) {
        struct bed_config config = config_of(dies);
        struct bed *bed = bed_new(&config);
        struct nand_injection fault;
        uint32_t place;

        bed_fill(bed);
        bed_trim(bed, 8, 64);
        bed_flush(bed);
        bed_stop(bed);
        place = bed->ftl->map[bed->ftl->config.logical_units];
        assert_true(ftl_is_place(place));
        fault = damage_of(bed, place);
        mount_with(bed, &fault);
        assert_int_not_equal(bed->ftl->mount.checkpoint_row, 0);
        bed_check(bed);
        /* The page is written again, so that the trims do not need the
         * checkpoint. */
        bed_settle(bed);
        for (unsigned int i = 0; i < 2; i++) {
            bed_flush(bed);
            if (dies == 2) {
                uint32_t page = bed->ftl->map[bed->ftl->config.logical_units];

                assert_true(ftl_is_place(page) && page != place);
            }
            mount_with(bed, &fault);
            bed_check(bed);
        }
        bed_free(bed);
    }
}

/* The die dies before the checkpoint is written, or while it is. */
static void test_a_checkpoint_that_is_written_without_a_die_is_loaded(
    void **state)
{
    (void)state;
    for (unsigned int die = 0; die < 4; die++) {
        struct bed_config config = config_of(4);
        struct bed *bed;

        /* The checkpoint needs more than one row of each die. */
        config.geometry.wordlines = 64;
        config.geometry.blocks = 40;
        config.logical_units = 0;
        bed = bed_new(&config);
        for (uint32_t unit = 0; unit < bed->units; unit += 100) {
            bed_write(bed, (uint64_t)unit * BED_SECTORS, BED_SECTORS);
        }
        bed_flush(bed);
        inject_death(bed, NAND_OP_READ, die, 0);
        bed_check(bed);
        bed_settle(bed);
        assert_int_equal(ftl_dead_dies(bed->ftl), 1);
        bed_flush(bed);
        bed_settle(bed);
        bed_stop(bed);
        mount_with(bed, NULL);
        assert_int_equal(ftl_dead_dies(bed->ftl), 1);
        assert_int_not_equal(bed->ftl->mount.checkpoint_row, 0);
        bed_check(bed);
        bed_free(bed);
    }
}

/* ---- Units of closed superblocks. */

/* Fill the medium, then write a part of it a second time. */
static struct bed *new_used(const struct bed_config *config, bool stops)
{
    struct bed *bed = bed_new(config);
    uint64_t random = 7;

    bed_fill(bed);
    for (unsigned int i = 0; i < 100; i++) {
        bed_write(bed, random_next(&random) % bed->units * BED_SECTORS,
                  BED_SECTORS);
    }
    bed_flush(bed);
    ftl_complete_stripes(bed->ftl);
    bed_settle(bed);
    if (stops) {
        bed_stop(bed);
    }
    return bed;
}

/* Start with one unit that cannot be read, then start with all units intact. */
static void start_with_damage(const struct bed *from, uint32_t unit,
                              bool has_parity)
{
    uint32_t place = from->ftl->map[unit];
    struct nand_injection fault = damage_of(from, place);
    struct bed *bed = bed_cut(from, unit);

    bed->is_unknown = false;
    mount_with(bed, &fault);
    if (has_parity) {
        bed_check(bed);
    } else {
        assert_int_equal(read_unit(bed, unit), MEDIA_READ_ERROR);
    }
    nand_array_clear_injections(bed->array);
    bed_check(bed);
    bed_settle(bed);
    mount_with(bed, NULL);
    bed_check(bed);
    bed_free(bed);
}

static void test_older_contents_do_not_replace_those_that_are_unreadable(
    void **state)
{
    struct bed_config config = config_of(2);
    struct bed *bed = new_used(&config, true);

    (void)state;
    for (uint32_t unit = 0; unit < bed->units; unit += 3) {
        start_with_damage(bed, unit, false);
    }
    bed_free(bed);
}

/* Write a checkpoint now, without closing the open superblocks. */
static void write_checkpoint(struct bed *bed)
{
    uint64_t before = ftl_counters(bed->ftl)->checkpoints;

    bed->ftl->num_opened = UINT16_MAX;
    bed->ftl->has_work = true;
    bed_settle(bed);
    assert_int_equal(ftl_counters(bed->ftl)->checkpoints, before + 1);
}

/* Both versions are in the superblock that is open when the checkpoint is
 * written, so the mount scans it. */
static void test_older_contents_in_an_open_superblock_do_not_come_back(
    void **state)
{
    struct bed_config config = config_of(2);
    struct bed *bed = new_used(&config, false);

    (void)state;
    for (uint32_t unit = 7; unit < 10; unit++) {
        for (unsigned int i = 0; i < 2; i++) {
            bed_write(bed, (uint64_t)unit * BED_SECTORS, BED_SECTORS);
            bed_flush(bed);
        }
        write_checkpoint(bed);
        start_with_damage(bed, unit, false);
    }
    bed_free(bed);
}

/* A mount does not use a checkpoint with this entry of its map.
 * @return the superblock of the checkpoint */
static uint32_t check_wrong_entry(uint32_t entry)
{
    struct bed_config config = config_of(2);
    struct bed *bed = new_used(&config, false);
    uint32_t superblock;
    struct bed *cut;

    bed->ftl->map[3] = entry;
    write_checkpoint(bed);
    superblock = bed->ftl->checkpoint.superblock;
    cut = bed_cut(bed, 1);
    bed_mount(cut);
    bed_check(cut);
    bed_free(cut);
    bed_free(bed);
    return superblock;
}

static void test_a_checkpoint_that_contradicts_itself_is_not_used(void **state)
{
    struct bed_config config = config_of(2);
    struct bed *bed = new_used(&config, false);
    const struct ftl_layout *layout = &bed->ftl->layout;
    uint32_t superblock, bad = 0;

    (void)state;
    check_wrong_entry(bed->ftl->map[4]); /* two units in one place */
    check_wrong_entry(layout->places);   /* behind the end */
    for (uint32_t row = 0; row < layout->superblock_rows * layout->superblocks;
         row++) {
        struct ftl_flash_op op;
        uint8_t planes;

        ftl_layout_row(layout, row, &op);
        planes = bed->bad_planes[op.block * layout->geometry.dies + op.die];
        if (planes != 0 && op.wordline == 1) {
            bad++;
            check_wrong_entry(row * layout->row_units +
                              (uint32_t)__builtin_ctz(planes));
        }
    }
    assert_int_not_equal(bad, 0);
    /* In the superblock of the checkpoint itself. */
    superblock = check_wrong_entry(layout->places);
    assert_int_equal(check_wrong_entry(ftl_place(layout, superblock, 1, 0)),
                     superblock);
    bed_free(bed);
}

/* A unit is lost, and only a checkpoint records that. */
static struct bed *new_with_lost_unit(uint32_t unit)
{
    struct bed_config config = config_of(2);
    struct bed *bed = new_used(&config, false);

    bed_trim(bed, (uint64_t)unit * BED_SECTORS, BED_SECTORS);
    bed_flush(bed);
    bed->ftl->map[unit] = FTL_LOST_NOWHERE;
    bed->ftl->checkpoint.is_needed = true;
    write_checkpoint(bed);
    return bed;
}

static void test_a_checkpoint_is_needed_only_while_units_are_lost(void **state)
{
    (void)state;
    for (unsigned int i = 0; i < 2; i++) {
        struct bed *bed = new_with_lost_unit(5);

        assert_false(ftl_checkpoint_give_up(&bed->ftl->background_floor));
        if (i == 0) {
            bed_write(bed, 5 * BED_SECTORS, BED_SECTORS);
        } else {
            bed_trim(bed, 5 * BED_SECTORS, BED_SECTORS);
        }
        assert_false(ftl_checkpoint_give_up(&bed->ftl->background_floor));
        bed_flush(bed);
        assert_true(ftl_checkpoint_give_up(&bed->ftl->background_floor));
        bed_settle(bed);
        mount_with(bed, NULL);
        bed_check(bed);
        bed_free(bed);
    }
}

/* The map has the places of two units that were written together in the wrong
 * order.  A read of both must not take the rebuilt contents of one for those of
 * the other. */
static void test_a_rebuilt_unit_must_be_the_one_that_is_read(void **state)
{
    const uint32_t unit = 20;
    struct bed_config config = config_of(4);
    struct bed *bed = new_used(&config, false);
    uint32_t *map = bed->ftl->map;
    struct nand_injection fault;
    uint32_t place;

    (void)state;
    bed_write(bed, unit * BED_SECTORS, 2 * BED_SECTORS);
    bed_flush(bed);
    bed_settle(bed);
    place = map[unit];
    assert_int_equal(ftl_place_row(&bed->ftl->layout, place),
                     ftl_place_row(&bed->ftl->layout, map[unit + 1]));
    fault = damage_of(bed, place);
    inject_fault(bed, &fault);
    assert_int_equal(bed_wait(bed, bed_submit_read(bed, unit * BED_SECTORS,
                                                   2 * BED_SECTORS)),
                     MEDIA_OK);
    assert_int_equal(ftl_counters(bed->ftl)->rebuilt_units, 1);
    map[unit] = map[unit + 1];
    map[unit + 1] = place;
    assert_int_equal(bed_wait(bed, bed_submit_read(bed, unit * BED_SECTORS,
                                                   2 * BED_SECTORS)),
                     MEDIA_READ_ERROR);
    bed_free(bed);
}

static void test_unreadable_contents_are_rebuilt_by_the_mount(void **state)
{
    (void)state;
    for (unsigned int i = 0; i < 2; i++) {
        struct bed_config config = config_of(4);
        struct bed *bed;

        config.checkpoint_superblocks = i == 0 ? 0 : 4;
        bed = new_used(&config, i != 0);
        for (uint32_t unit = 0; unit < bed->units; unit += 4) {
            start_with_damage(bed, unit, true);
        }
        bed_free(bed);
    }
}

/* ---- Units that are lost for good. */

/* Overwrite other units, until garbage collection has moved all but `unit`. */
static void overwrite_others(struct bed *bed, uint32_t unit, unsigned int ops)
{
    uint64_t random = 11;

    for (unsigned int i = 0; i < ops; i++) {
        uint32_t other = (uint32_t)(random_next(&random) % bed->units);

        if (other != unit) {
            bed_write(bed, (uint64_t)other * BED_SECTORS, BED_SECTORS);
        }
        if (i % 40 == 39) {
            bed_flush(bed);
        }
    }
    bed_flush(bed);
}

static void check_lost_unit(uint16_t checkpoint_superblocks)
{
    const uint32_t unit = 5;
    struct bed_config config = config_of(2);
    struct bed *bed;
    struct nand_injection fault;
    uint32_t superblock;

    config.checkpoint_superblocks = checkpoint_superblocks;
    config.wear_spread = 4;
    bed = new_used(&config, false);
    fault = damage_of(bed, bed->ftl->map[unit]);
    superblock = ftl_place_superblock(&bed->ftl->layout, bed->ftl->map[unit]);
    inject_fault(bed, &fault);
    overwrite_others(bed, unit, 8000);
    assert_true(ftl_is_lost(bed->ftl->map[unit]));
    assert_int_equal(ftl_counters(bed->ftl)->lost_units, 1);
    assert_true(bed->ftl->wear[superblock] > 1);
    assert_int_equal(read_unit(bed, unit), MEDIA_READ_ERROR);
    /* A write of a part fails, because the rest of the unit cannot be read. */
    assert_int_equal(
        bed_wait(bed, bed_submit_write(bed, unit * BED_SECTORS + 1, 2, false)),
        MEDIA_WRITE_ERROR);
    /* Reads fail after restarts, too, with a checkpoint or without one. */
    for (unsigned int i = 0; i < 4; i++) {
        overwrite_others(bed, unit, i * 100);
        if (i % 2 != 0 && checkpoint_superblocks != 0) {
            bed_stop(bed);
        }
        mount_with(bed, NULL);
        assert_int_equal(read_unit(bed, unit), MEDIA_READ_ERROR);
    }
    bed_write(bed, unit * BED_SECTORS, BED_SECTORS);
    bed_flush(bed);
    assert_int_equal(read_unit(bed, unit), MEDIA_OK);
    mount_with(bed, NULL);
    assert_int_equal(read_unit(bed, unit), MEDIA_OK);
    bed_free(bed);
}

static void test_a_superblock_with_an_unreadable_unit_is_collected(void **state)
{
    (void)state;
    check_lost_unit(4);
    check_lost_unit(0);
}

static void test_a_lost_unit_is_trimmed(void **state)
{
    const uint32_t unit = 5;
    struct bed_config config = config_of(2);
    struct bed *bed = new_used(&config, false);
    struct nand_injection fault = damage_of(bed, bed->ftl->map[unit]);

    (void)state;
    inject_fault(bed, &fault);
    overwrite_others(bed, unit, 8000);
    assert_true(ftl_is_lost(bed->ftl->map[unit]));
    /* Contents of another unit may be at this place by now. */
    nand_array_clear_injections(bed->array);
    bed_trim(bed, unit * BED_SECTORS, BED_SECTORS);
    bed_flush(bed);
    bed_check(bed);
    mount_with(bed, NULL);
    bed_check(bed);
    bed_free(bed);
}

/* ---- The capacity. */

/* After a reset with power on, the write buffer is found at this capacity. */
static void check_reset(struct bed *bed)
{
    struct bed *again;

    bed_write(bed, 0, 24);
    again = bed_reset(bed, 5);
    bed_mount(again);
    assert_int_equal(ftl_capacity(again->ftl), again->units);
    bed_check(again);
    assert_int_equal(ftl_adopted(again->ftl)->units, 3);
    bed_free(again);
}

/*
 * If a die is dead at the start, its bad planes are not known, but the capacity
 * must stay the same.  The flash says what it is in a checkpoint or in a page.
 */
static void test_the_capacity_stays_when_a_die_is_dead_at_the_start(
    void **state)
{
    unsigned int changed = 0;

    (void)state;
    for (unsigned int i = 0; i < 8; i++) {
        struct bed_config config = config_of(4);
        struct bed *bed;

        config.geometry.blocks = 60;
        config.logical_units = 1000;
        config.seed = 1 + i;
        config.checkpoint_superblocks = i % 2 != 0 ? 4 : 0;
        config.estimates_capacity = true;
        bed = bed_new(&config);
        bed_fill(bed);
        if (i % 4 < 2) {
            bed_trim(bed, 80, 400);
            bed_flush(bed);
        }
        ftl_stop(bed->ftl);
        bed_settle(bed);
        ftl_complete_stripes(bed->ftl);
        bed_settle(bed);
        inject_death(bed, NAND_OP_READ, i / 2, 0);
        bed_check(bed);
        bed_settle(bed);
        bed_start_mount(bed);
        changed += ftl_capacity(bed->ftl) != bed->units;
        while (!ftl_capacity_is_known(bed->ftl)) {
            assert_true(bed_step(bed));
        }
        assert_int_equal(ftl_capacity(bed->ftl), bed->units);
        while (ftl_state(bed->ftl) == FTL_MOUNTING) {
            assert_true(bed_step(bed));
        }
        assert_int_equal(ftl_capacity(bed->ftl), bed->units);
        bed_check(bed);
        bed_fill(bed);
        bed_check(bed);
        check_reset(bed);
        bed_free(bed);
    }
    assert_int_equal(changed, 8);
}

/* ---- Words that are lost while a mount copies rows that may be torn. */

/* The mount has read a page with trims, and has not programmed it yet. */
static void lose_word_of_page(struct bed *bed)
{
    for (uint16_t i = 0; i < bed->ftl->buffer.num_slots; i++) {
        const struct ftl_slot *slot = &bed->ftl->buffer.slots[i];
        uint8_t *word = ftl_slot_data(&bed->ftl->buffer, i);

        if (slot->pool == FTL_POOL_MOVE && slot->state == FTL_SLOT_WAITING &&
            slot->number == bed->ftl->config.logical_units &&
            ftl_mount_is_settling(&bed->ftl->space_floor)) {
            memset(word, 0, sizeof(uint64_t));
            assert_true(ftl_note_lost_word(bed->ftl, word));
            bed->after_event = NULL;
            return;
        }
    }
}

/* The lost word has the bits of 64 units.  The page must not say that these
 * units are trimmed. */
static void test_a_lost_word_of_a_page_does_not_trim_units(void **state)
{
    (void)state;
    for (uint8_t dies = 2; dies <= 4; dies += 2) {
        struct bed_config config = config_of(dies);
        struct bed *bed = bed_new(&config);
        struct bed *cut;

        bed_fill(bed);
        bed_trim(bed, 800, 64);
        bed_flush(bed);
        cut = bed_cut(bed, 1);
        cut->after_event = lose_word_of_page;
        mount_with(cut, NULL);
        assert_null(cut->after_event);
        bed_check(cut);
        mount_with(cut, NULL);
        bed_check(cut);
        bed_free(cut);
        bed_free(bed);
    }
}

/* ---- Words that are lost while their row is being programmed. */

/* The slot of a unit that is being programmed, after as many steps as needed.
 */
static uint16_t wait_until_programming(struct bed *bed, uint32_t unit)
{
    for (unsigned int steps = 0; steps < MOUNT_STEPS; steps++) {
        for (uint16_t i = 0; i < bed->ftl->buffer.num_slots; i++) {
            const struct ftl_slot *slot = &bed->ftl->buffer.slots[i];

            if (slot->state == FTL_SLOT_PROGRAMMING && slot->number == unit) {
                return i;
            }
        }
        assert_true(bed_step(bed));
    }
    fail_msg("The unit is not programmed.");
    return FTL_LIST_END;
}

/* A host's read finds the word.  It is cleared, so that the controller, which
 * looks at the data later, finds nothing wrong. */
static void lose_word_of(struct bed *bed, uint16_t slot, uint32_t sector)
{
    uint8_t *word = ftl_slot_data(&bed->ftl->buffer, slot) +
                    (size_t)sector * BED_SECTOR_LEN;

    memset(word, 0, sizeof(uint64_t));
    assert_true(ftl_note_lost_word(bed->ftl, word));
}

static void check_sector(struct bed *bed, uint32_t unit, uint32_t sector,
                         enum media_status status)
{
    uint64_t lba = (uint64_t)unit * BED_SECTORS + sector;

    assert_int_equal(bed_wait(bed, bed_submit_read(bed, lba, 1)), status);
}

static void test_a_word_that_is_lost_after_its_row_was_sent_is_never_good(
    void **state)
{
    (void)state;
    for (uint8_t dies = 2; dies <= 4; dies += 2) {
        struct bed_config config = config_of(dies);
        struct bed *bed = bed_new(&config);
        struct bed_io *flush;

        bed_fill(bed);
        bed_write(bed, UINT64_C(7) * BED_SECTORS, BED_SECTORS);
        flush = bed_submit_flush(bed);
        lose_word_of(bed, wait_until_programming(bed, 7), 3);
        assert_int_equal(bed_wait(bed, flush), MEDIA_OK);
        bed_settle(bed);
        check_sector(bed, 7, 2, MEDIA_OK);
        check_sector(bed, 7, 3, MEDIA_MARKED);
        bed_start_mount(bed);
        bed_settle(bed);
        check_sector(bed, 7, 4, MEDIA_OK);
        check_sector(bed, 7, 3, MEDIA_MARKED);
        bed_free(bed);
    }
}

/* The power is cut soon after the first start of an array, and then a die is
 * dead. */
static void test_the_capacity_of_a_young_array_is_known(void **state)
{
    (void)state;
    for (unsigned int i = 0; i < 4; i++) {
        struct bed_config config = config_of(4);
        struct bed *bed, *cut;

        config.logical_units = 100;
        config.seed = 1 + i;
        config.estimates_capacity = true;
        bed = bed_new(&config);
        bed_settle(bed);
        cut = bed_cut(bed, i);
        bed_free(bed);
        cut->changes_dead_dies = true;
        cut->dead_dies = (uint8_t)BIT(i);
        bed_mount(cut);
        assert_int_equal(ftl_dead_dies(cut->ftl), 1);
        assert_int_equal(ftl_capacity(cut->ftl), cut->units);
        bed_free(cut);
    }
}

/* ---- Words that are lost each time when a unit is rebuilt. */

static void lose_word_of_rescues(struct bed *bed)
{
    for (unsigned int i = 0; i < FTL_RESCUES; i++) {
        struct ftl_rescue *rescue = &bed->ftl->parity.rescues[i];

        if (rescue->request != FTL_LIST_END && !rescue->has_lost_word) {
            assert_true(ftl_note_lost_word(bed->ftl, rescue->data));
        }
    }
}

/* A page with trims cannot be read, and each attempt to rebuild it loses a word
 * of the sum.  The page is intact, so the mount fails, and the next one finds
 * the trims. */
static void test_a_mount_fails_if_each_rebuilding_of_a_page_loses_a_word(
    void **state)
{
    struct bed_config config = config_of(4);
    struct nand_injection fault;
    struct bed *bed, *cut;

    (void)state;
    config.checkpoint_superblocks = 0;
    bed = bed_new(&config);
    bed_fill(bed);
    bed_trim(bed, 800, 64);
    bed_flush(bed);
    while (!ftl_stripes_are_complete(bed->ftl)) {
        ftl_complete_stripes(bed->ftl);
        bed_settle(bed);
    }
    fault = damage_of(bed, bed->ftl->map[bed->units]);
    cut = bed_cut(bed, 1);
    bed_start_mount(cut);
    while (cut->ftl->mount.phase != FTL_MOUNT_PAGES) {
        assert_true(bed_step(cut));
    }
    inject_fault(cut, &fault);
    cut->after_event = lose_word_of_rescues;
    while (ftl_state(cut->ftl) == FTL_MOUNTING) {
        assert_true(bed_step(cut));
    }
    assert_int_equal(ftl_state(cut->ftl), FTL_FAILED);
    cut->after_event = NULL;
    nand_array_clear_injections(cut->array);
    mount_with(cut, NULL);
    bed_check(cut);
    bed_free(cut);
    bed_free(bed);
}

/* ---- A trim page that was durable, and whose stripe has two losses. */

/* The unit that the next row of the stripe of a place has in the same planes.
 */
static uint32_t neighbour_of(const struct ftl *ftl, uint32_t place)
{
    uint32_t dies = ftl->layout.geometry.dies;
    uint32_t row = ftl_place_row(&ftl->layout, place);

    row = row % dies == dies - 1 ? row - 1 : row + 1;
    return row * ftl->layout.row_units + place % ftl->layout.row_units;
}

static void write_eight(struct bed *bed, uint32_t unit)
{
    bed_write(bed, (uint64_t)unit * BED_SECTORS, 8 * BED_SECTORS);
    bed_flush(bed);
    bed_settle(bed);
}

/* A drive with old contents of trimmed units on its flash.  The trim page is in
 * a complete stripe, and in a row that no mount takes for torn. */
static struct bed *new_with_old_trims(uint32_t *page)
{
    enum { TRIMMED = 8, LATER_ROWS = 48 };
    struct bed_config config = config_of(4);
    const struct ftl_layout *layout;
    const struct ftl_stream *stream;
    struct bed *bed;
    uint64_t row;

    config.checkpoint_superblocks = 0;
    bed = bed_new(&config);
    layout = &bed->ftl->layout;
    stream = &bed->ftl->streams[FTL_HOST_STREAM];
    bed_fill(bed);
    do {
        write_eight(bed, 100);
    } while (stream->superblock == FTL_NOWHERE || stream->next_row > 6);
    write_eight(bed, 0);
    bed_trim(bed, 0, TRIMMED * BED_SECTORS);
    bed_flush(bed);
    /* These stay valid, so that the superblock stays, too. */
    write_eight(bed, 120);
    assert_int_equal(ftl_place_superblock(layout, bed->ftl->map[120]),
                     ftl_place_superblock(layout, bed->ftl->map[bed->units]));
    row = bed->ftl->next_row_number;
    while (bed->ftl->next_row_number < row + LATER_ROWS) {
        write_eight(bed, 100);
    }
    bed_settle(bed);
    ftl_complete_stripes(bed->ftl);
    bed_settle(bed);
    *page = bed->ftl->map[bed->units];
    return bed;
}

/*
 * The scan has found the page, but then neither the page nor another unit of
 * its stripe can be read.  The mount knows that there was a page, and what is
 * older than it may have been trimmed: it is lost.
 */
static void test_a_lost_trim_page_does_not_bring_old_contents_back(void **state)
{
    uint32_t page;
    struct bed *bed = new_with_old_trims(&page);
    struct nand_injection fault = damage_of(bed, page);
    struct nand_injection other = damage_of(bed, neighbour_of(bed->ftl, page));
    struct bed *cut = bed_cut_saved(bed, 1), *again;

    (void)state;
    for (uint32_t i = 0; i < cut->units; i++) {
        cut->unit[i].may_fail = true;
    }
    bed_start_mount(cut);
    while (cut->ftl->mount.phase != FTL_MOUNT_PAGES) {
        assert_true(bed_step(cut));
    }
    inject_fault(cut, &fault);
    inject_fault(cut, &other);
    while (ftl_state(cut->ftl) == FTL_MOUNTING) {
        assert_true(bed_step(cut));
    }
    assert_int_equal(ftl_state(cut->ftl), FTL_READY);
    assert_int_equal(ftl_place_superblock(&cut->ftl->layout, page),
                     fault.block);
    assert_in_range(bed_check_each(cut), 8, cut->units - 16);
    bed_settle(cut); /* Another page says what is lost. */
    bed_write(cut, 0, BED_SECTORS);
    bed_flush(cut);
    again = bed_cut_saved(cut, 2);
    bed_mount(again);
    assert_in_range(bed_check_each(again), 7, cut->units - 16);
    bed_free(again);
    bed_free(cut);
    bed_free(bed);
}
