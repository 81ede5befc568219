/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests what survives a wipe of all blocks, even if the power fails. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "storage/ftl/state.h"
#include "storage/ftl/space/space.h"
#include "lib/random.h"
#include "tests/unit/storage/ftl/ftl_faults.h"

static const struct bed_config small = {
    .profile = "slc",
    .geometry = {.channels = 1,
                 .dies = 3,
                 .planes = 4,
                 .units = 1,
                 .pages = 1,
                 .blocks = 24,
                 .wordlines = 4},
    .logical_units = 100,
    .buffer_units = 32,
    .checkpoint_superblocks = 3,
    .seed = 3,
};

/* The bed takes it for a read. */
static struct bed_io wipe_io;

static void start_wipe(struct bed *bed)
{
    wipe_io = (struct bed_io){.is_used = true, .io.op = MEDIA_READ};
    bed_wipe(bed, &wipe_io);
}

static void wipe_flash(struct bed *bed)
{
    start_wipe(bed);
    while (!wipe_io.is_done) {
        assert_true(bed_step(bed));
    }
    assert_int_equal(wipe_io.status, MEDIA_OK);
}

/* The oracle: everything reads as zeroes. */
static void expect_zeroes(struct bed *bed)
{
    for (uint32_t i = 0; i < bed->units; i++) {
        memset(bed->unit[i].base, 0, sizeof(bed->unit[i].base));
        bed->unit[i].durable = bed->unit[i].completed = bed->unit[i].writes;
    }
    bed->is_unknown = false;
    bed_check(bed);
}

/* A medium that was used, and some of whose planes have failed. */
static struct bed *new_worn_like(const struct bed_config *config)
{
    struct bed *bed = bed_new(config);
    uint64_t random = 5;

    fail_operations(bed, NAND_OP_PROGRAM, 0, 60);
    for (unsigned int i = 0; i < 600; i++) {
        bed_write(bed, random_next(&random) % bed->units * BED_SECTORS,
                  BED_SECTORS);
        if (i % 40 == 0) {
            bed_flush(bed);
        }
    }
    nand_array_clear_injections(bed->array);
    bed_flush(bed);
    bed_settle(bed);
    assert_true(ftl_failed_planes(bed->ftl) > 3);
    return bed;
}

static struct bed *new_worn(void)
{
    return new_worn_like(&small);
}

/*
 * The first operations of the wipe make the keeper.  If the transfer of one of
 * them fails, another superblock becomes the keeper: a page must not be
 * programmed into a block that was not erased, or beyond a page that was not
 * programmed.
 */
static void test_a_transfer_that_fails_does_not_break_a_rule(void **state)
{
    (void)state;
    for (uint32_t i = 1; i < 30; i++) {
        struct bed *bed = new_worn();
        uint32_t failed = ftl_failed_planes(bed->ftl);
        struct bed *cut;

        start_wipe(bed);
        bed->changes_until_error = i;
        while (!wipe_io.is_done) {
            assert_true(bed_step(bed));
        }
        assert_int_equal(bed->changes_until_error, 0);
        if (i <= small.geometry.dies + 1u) {
            assert_int_equal(wipe_io.status, MEDIA_OK);
            expect_zeroes(bed);
        }
        cut = bed_cut(bed, i);
        bed_mount(cut);
        assert_int_equal(ftl_failed_planes(cut->ftl), failed);
        bed_free(cut);
        bed_free(bed);
    }
}

/* ---- What a wipe erases. */

enum { BLOCKS_MAX = 512 };

/* Read the number of erasures of each block of each plane.  A block that the
 * factory has marked has UINT32_MAX.  @return how many blocks there are */
static uint32_t count_erasures(const struct bed *bed,
                               uint32_t counts[BLOCKS_MAX])
{
    const struct nand_geometry *geometry = &bed->config.geometry;
    uint32_t count = 0;

    for (uint32_t die = 0; die < geometry->dies; die++) {
        for (uint32_t plane = 0; plane < geometry->planes; plane++) {
            for (uint32_t i = 0; i < geometry->blocks; i++) {
                const struct nand_block *block =
                    nand_array_block(bed->array, 0, die, plane, i);

                assert_true(count < BLOCKS_MAX);
                counts[count++] = (block->flags & NAND_BLOCK_FACTORY_BAD) != 0
                                      ? UINT32_MAX
                                      : block->number;
            }
        }
    }
    return count;
}

/* Empty, spare and failed blocks are erased, too. */
static void test_a_wipe_erases_every_block(void **state)
{
    static uint32_t before[BLOCKS_MAX], after[BLOCKS_MAX];
    struct bed *bed = new_worn();
    uint32_t count = count_erasures(bed, before);

    (void)state;
    wipe_flash(bed);
    assert_int_equal(count_erasures(bed, after), count);
    for (uint32_t i = 0; i < count; i++) {
        if (before[i] != UINT32_MAX) {
            assert_true(after[i] > before[i]);
        }
    }
    bed_free(bed);
}

static enum media_status wipe_status(struct bed *bed)
{
    start_wipe(bed);
    while (!wipe_io.is_done) {
        assert_true(bed_step(bed));
    }
    return wipe_io.status;
}

/* They end as if there were no wipe, and nothing of them is left. */
static void test_a_wipe_waits_for_operations_in_progress(void **state)
{
    struct bed *bed = new_worn();
    struct bed_io *writes[4];

    (void)state;
    for (unsigned int i = 0; i < ARRAY_LEN(writes); i++) {
        writes[i] = bed_submit_write(bed, (uint64_t)i * BED_IO_SECTORS,
                                     BED_IO_SECTORS, true);
    }
    assert_int_equal(wipe_status(bed), MEDIA_OK);
    for (unsigned int i = 0; i < ARRAY_LEN(writes); i++) {
        assert_true(writes[i]->is_done);
        assert_int_equal(bed_wait(bed, writes[i]), MEDIA_OK);
    }
    expect_zeroes(bed);
    bed_free(bed);
}

static void test_a_wipe_leaves_no_old_contents_in_storage(void **state)
{
    struct bed_config config = small;
    struct bed *bed;

    (void)state;
    config.erases_early = true;
    bed = new_worn_like(&config);
    for (unsigned int i = 0; i < 20; i++) {
        wipe_flash(bed);
        bed_settle(bed);
        expect_zeroes(bed);
        for (uint32_t block = 0; block < config.geometry.blocks; block++) {
            assert_false(bed_keeps_old_contents(bed, block));
        }
        for (uint32_t unit = 0; unit < 4 * bed->units; unit++) {
            bed_write(bed, (uint64_t)unit % (bed->units / 4) * BED_SECTORS,
                      BED_SECTORS);
        }
        bed_flush(bed);
    }
    bed_free(bed);
}

static void test_a_wipe_with_a_dead_die_fails(void **state)
{
    struct bed *bed = new_worn();

    (void)state;
    inject_death(bed, NAND_OP_ERASE, 1, 0);
    assert_int_equal(wipe_status(bed), MEDIA_WRITE_ERROR);
    assert_int_equal(ftl_state(bed->ftl), FTL_READY);
    bed_free(bed);
}

/* The pages that outlive the wipe do not know of these failures. */
static void test_erasures_that_fail_in_a_wipe_are_remembered(void **state)
{
    struct bed *bed = new_worn();
    uint32_t failed = ftl_failed_planes(bed->ftl);
    struct nand_injection failure =
        fault_once(NAND_OP_ERASE, NAND_EFFECT_FAIL, 40);

    (void)state;
    failure.trigger.times = 3;
    inject_fault(bed, &failure);
    assert_int_equal(wipe_status(bed), MEDIA_OK);
    assert_true(ftl_failed_planes(bed->ftl) > failed);
    failed = ftl_failed_planes(bed->ftl);
    bed_settle(bed);
    bed_mount(bed);
    assert_int_equal(ftl_failed_planes(bed->ftl), failed);
    bed_free(bed);
}

/* ---- What survives. */

static void test_a_wipe_keeps_failed_planes_and_erase_counts(void **state)
{
    struct bed *bed = new_worn();
    uint32_t failed = ftl_failed_planes(bed->ftl);
    struct ftl_erase_counts before, after;

    (void)state;
    ftl_erase_counts(bed->ftl, &before);
    wipe_flash(bed);
    expect_zeroes(bed);
    assert_int_equal(ftl_failed_planes(bed->ftl), failed);
    for (unsigned int i = 0; i < 2; i++) {
        ftl_erase_counts(bed->ftl, &after);
        assert_in_range(after.average, before.average + 1, before.average + 2);
        bed_mount(bed);
        assert_int_equal(ftl_failed_planes(bed->ftl), failed);
        expect_zeroes(bed);
    }
    bed_write(bed, 0, 64);
    bed_flush(bed);
    bed_check(bed);
    bed_free(bed);
}

/* What the power cut leaves is wiped again, as the drive does. */
static void check_cut(struct bed *bed)
{
    uint32_t failed = *(const uint32_t *)bed->ctx;
    struct bed *cut = bed_cut(bed, bed->events);

    bed_mount(cut);
    assert_true(ftl_failed_planes(cut->ftl) >= failed);
    if (bed->events % 5 == 0) {
        wipe_flash(cut);
        expect_zeroes(cut);
        assert_true(ftl_failed_planes(cut->ftl) >= failed);
    }
    bed_free(cut);
}

static void test_a_cut_during_a_wipe_keeps_failed_planes(void **state)
{
    struct bed *bed = new_worn();
    uint32_t failed = ftl_failed_planes(bed->ftl);
    struct bed_io *io = &wipe_io;
    unsigned int cuts = 0;

    (void)state;
    bed->ctx = &failed;
    fail_operations(bed, NAND_OP_PROGRAM, 2, 0); /* of the pages that survive */
    start_wipe(bed);
    for (unsigned int i = 0; !io->is_done; i++) {
        assert_true(bed_step(bed));
        if (i % 7 == 0) {
            struct bed_io saved = wipe_io;

            check_cut(bed);
            wipe_io = saved;
            cuts++;
        }
    }
    assert_int_equal(io->status, MEDIA_OK);
    assert_true(cuts > 30);
    expect_zeroes(bed);
    bed_free(bed);
}

/* The superblock with the health page of the first planes. */
static uint32_t find_health_page(const struct ftl *ftl)
{
    uint32_t entry = ftl->map[ftl->config.logical_units + ftl->trim_pages];

    return ftl_is_in_slot(entry) || entry == FTL_NOWHERE
               ? FTL_NOWHERE
               : ftl_place_superblock(&ftl->layout, entry);
}

/* A medium whose first superblock is good and holds the first health page.
 * Nothing else on the flash says which plane has failed last. */
static struct bed *new_with_page_in_first_superblock(void)
{
    struct bed_config config = small;
    struct bed *bed;
    uint64_t random = 9;

    config.checkpoint_superblocks = 0;
    bed = new_worn_like(&config);
    for (unsigned int i = 0; find_health_page(bed->ftl) != 0; i++) {
        assert_true(i < 20000);
        bed_write(bed, random_next(&random) % bed->units * BED_SECTORS,
                  BED_SECTORS);
        bed_flush(bed);
        if (bed->ftl->streams[FTL_HOST_STREAM].superblock == 0) {
            fail_operations(bed, NAND_OP_PROGRAM, 1, 0);
            bed_write(bed, 0, BED_SECTORS);
            bed_flush(bed);
        }
    }
    bed_settle(bed);
    assert_true(ftl_superblock_is_good(&bed->ftl->space_floor, 0));
    return bed;
}

/* The page must not be erased before a newer one is on flash. */
static void test_a_wipe_first_erases_a_superblock_without_pages(void **state)
{
    struct bed *bed = new_with_page_in_first_superblock();
    uint32_t failed = ftl_failed_planes(bed->ftl);
    uint64_t programs = bed->programs, erases = bed->erases;

    (void)state;
    start_wipe(bed);
    while (bed->programs == programs) {
        struct bed *cut = bed_cut(bed, bed->events);

        bed_mount(cut);
        assert_int_equal(ftl_failed_planes(cut->ftl), failed);
        bed_free(cut);
        assert_true(bed_step(bed));
    }
    assert_true(bed->erases > erases);
    bed_free(bed);
}

/* Programs of the pages that survive fail, too. */
static void test_a_wipe_keeps_pages_although_programs_fail(void **state)
{
    struct bed *bed = new_worn();
    uint32_t failed = ftl_failed_planes(bed->ftl);

    (void)state;
    fail_operations(bed, NAND_OP_PROGRAM, 8, 0);
    wipe_flash(bed);
    nand_array_clear_injections(bed->array);
    expect_zeroes(bed);
    assert_true(ftl_failed_planes(bed->ftl) > failed);
    bed_settle(bed);
    failed = ftl_failed_planes(bed->ftl);
    bed_mount(bed);
    assert_int_equal(ftl_failed_planes(bed->ftl), failed);
    bed_free(bed);
}

/* With two dead dies, the mount fails before the capacity is known.  A wipe
 * erases the dies that answer, and then fails. */
static void test_a_wipe_is_possible_while_the_capacity_is_unknown(void **state)
{
    struct bed_config config = small;
    struct bed *bed;

    (void)state;
    config.geometry.dies = 6;
    bed = bed_new(&config);
    bed_write(bed, 0, 64);
    bed_flush(bed);
    bed->is_estimated = true;
    bed_start_mount(bed);
    inject_death(bed, NAND_OP_READ, 0, 0);
    inject_death(bed, NAND_OP_READ, 1, 0);
    while (ftl_state(bed->ftl) == FTL_MOUNTING) {
        assert_true(bed_step(bed));
    }
    assert_int_equal(ftl_state(bed->ftl), FTL_FAILED);
    assert_true(bed->ftl->config.is_capacity_estimated);
    start_wipe(bed);
    while (!wipe_io.is_done) {
        assert_true(bed_step(bed));
    }
    assert_int_equal(wipe_io.status, MEDIA_WRITE_ERROR);
    assert_true(bed->erases >= small.geometry.blocks);
    bed_free(bed);
}
