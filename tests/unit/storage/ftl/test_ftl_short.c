/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Short blocks: with one or two wordlines in a block, the rows that may be torn
 * after a power cut are those of several superblocks.  The mount has space for
 * copies of all of them, also when the medium is full.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "storage/ftl/state.h"
#include "storage/ftl/space/space.h"
#include "lib/random.h"
#include "tests/unit/storage/ftl/ftl_bed.h"

static const struct bed_config short_blocks = {
    .profile = "slc",
    .geometry = {.channels = 1,
                 .dies = 8,
                 .planes = 4,
                 .units = 1,
                 .pages = 1,
                 .blocks = 60,
                 .wordlines = 1},
    .buffer_units = 64,
};

static void overwrite_units(struct bed *bed, uint64_t *random,
                            unsigned int writes)
{
    for (unsigned int i = 0; i < writes; i++) {
        uint64_t unit = random_next(random) % (bed->units - 8);

        (void)bed_submit_write(bed, unit * BED_SECTORS, 64, false);
        if (i % 40 == 39) {
            bed_flush(bed);
        }
    }
}

/* The power is cut, and cut again during the mount. */
static struct bed *cut_twice(struct bed *bed, uint64_t *random)
{
    struct bed *cut = bed_cut(bed, random_next(random));
    struct bed *again;

    bed_free(bed);
    bed_start_mount(cut);
    for (uint64_t i = random_next(random) % 800; i != 0 && bed_step(cut); i--) {
    }
    again = bed_cut(cut, random_next(random));
    bed_free(cut);
    return again;
}

static void survive_cuts(const struct bed_config *config)
{
    uint64_t random = config->seed;
    struct bed *bed = bed_new(config);

    for (uint32_t i = 0; i < bed->units; i++) {
        bed_write(bed, (uint64_t)i * BED_SECTORS, BED_SECTORS);
    }
    bed_flush(bed);
    for (unsigned int i = 0; i < bed_setting("FTL_CUTS", 12); i++) {
        overwrite_units(bed, &random,
                        100 + (unsigned int)(random_next(&random) % 60));
        bed = cut_twice(bed, &random);
        bed_mount(bed);
        assert_false(ftl_is_read_only(bed->ftl));
        bed_check(bed);
    }
    bed_free(bed);
}

static void test_a_mount_has_space_for_copies_in_short_blocks(void **state)
{
    (void)state;
    for (unsigned int i = 0; i < bed_setting("FTL_SEEDS", 4); i++) {
        struct bed_config config = short_blocks;

        config.seed = 1 + i;
        config.geometry.wordlines = (uint16_t)(1 + i % 2);
        config.checkpoint_superblocks = i % 4 < 2 ? 8 : 0;
        config.torn_units_vary = true;
        survive_cuts(&config);
    }
}

/* ---- Mounts without space. */

static const struct bed_config few_units = {
    .profile = "slc",
    .geometry = {.channels = 1,
                 .dies = 4,
                 .planes = 4,
                 .units = 1,
                 .pages = 1,
                 .blocks = 24,
                 .wordlines = 4},
    .logical_units = 30,
    .buffer_units = 24,
    .seed = 1,
};

/* Let planes fail in all superblocks but some free ones, that of the host's
 * stream and that of the checkpoint, so that they are not used any more, and
 * have the health page programmed. */
static void leave_free(struct bed *bed, uint32_t left)
{
    struct ftl *ftl = bed->ftl;

    for (uint32_t i = 0; i < ftl->layout.superblocks; i++) {
        uint8_t *failed = &ftl->failed_planes[i * few_units.geometry.dies];
        uint8_t *bad = &ftl->bad_planes[i * few_units.geometry.dies];
        bool is_free = ftl->superblocks[i].state == FTL_SUPERBLOCK_FREE;

        if (i == ftl->streams[FTL_HOST_STREAM].superblock ||
            i == ftl->checkpoint.superblock) {
            continue;
        }
        if (is_free && left != 0) {
            left--;
            continue;
        }
        failed[0] = failed[1] = bad[0] = bad[1] = 0xf;
        ftl_superblock_measure(&ftl->space_floor, i);
        if (is_free) {
            ftl_superblock_enter(&ftl->space_floor, i, FTL_SUPERBLOCK_RETIRED);
        }
    }
    ftl_health_write(&ftl->space_floor);
    ftl->has_work = true;
    bed_flush(bed);
    bed_settle(bed);
}

/* A drive whose superblock for hosts has been opened just now, and which has no
 * more free superblocks than `left`. */
static struct bed *new_without_space(uint16_t checkpoints, uint32_t left)
{
    struct bed_config config = few_units;
    const struct ftl_stream *stream;
    struct bed *bed;

    config.checkpoint_superblocks = checkpoints;
    bed = bed_new(&config);
    stream = &bed->ftl->streams[FTL_HOST_STREAM];
    for (uint32_t i = 0;
         i < 60 || stream->superblock == FTL_NOWHERE || stream->next_row != 1 ||
         (checkpoints != 0 && bed->ftl->checkpoint.superblock == FTL_NOWHERE);
         i++) {
        bed_write(bed, (uint64_t)(i % bed->units) * BED_SECTORS, BED_SECTORS);
        bed_flush(bed);
        bed_settle(bed);
    }
    leave_free(bed, left);
    assert_int_equal(bed->ftl->free_superblocks, left);
    assert_true(stream->next_row < few_units.geometry.dies);
    return bed;
}

/*
 * The first stripe of the host's superblock is not complete, so that copies of
 * its units count, which a mount has made that was cut.  There is no more
 * space, and the next mount erases these copies.
 */
static void test_copies_of_a_cut_mount_do_not_use_up_the_last_space(
    void **state)
{
    struct bed *bed = new_without_space(0, 1);
    struct bed *cut = bed_cut(bed, 1), *again;

    (void)state;
    bed_start_mount(cut);
    while (cut->ftl->mount.phase != FTL_MOUNT_CLEAR) {
        assert_true(bed_step(cut));
    }
    assert_int_equal(cut->ftl->free_superblocks, 0);
    again = bed_cut(cut, 2);
    bed_start_mount(again);
    while (ftl_state(again->ftl) == FTL_MOUNTING &&
           again->ftl->mount.phase != FTL_MOUNT_CLEAR) {
        assert_true(bed_step(again));
    }
    assert_int_equal(again->ftl->mount.phase, FTL_MOUNT_CLEAR);
    while (ftl_state(again->ftl) == FTL_MOUNTING) {
        assert_true(bed_step(again));
    }
    bed_check(again);
    bed_free(again);
    bed_free(cut);
    bed_free(bed);
}

/*
 * A mount has no space, so the medium is read-only until the next start.  A
 * health page that is written meanwhile does not make it read-only for ever.
 */
static void test_a_mount_without_space_is_read_only_for_this_start(void **state)
{
    struct bed *bed = new_without_space(6, 0);
    struct bed *cut = bed_cut(bed, 1);

    (void)state;
    bed_mount(cut);
    assert_true(ftl_is_read_only(cut->ftl));
    bed_check(cut);
    ftl_health_write(&cut->ftl->space_floor);
    cut->ftl->has_work = true;
    bed_settle(cut);
    assert_int_equal(cut->ftl->health_changes, 0);
    bed_flush(cut); /* The page gets the space of the checkpoint. */
    assert_int_equal(cut->ftl->checkpoint.superblock, FTL_NOWHERE);
    bed_start_mount(cut);
    while (ftl_state(cut->ftl) == FTL_MOUNTING &&
           cut->ftl->mount.phase < FTL_MOUNT_DROP) {
        assert_true(bed_step(cut));
    }
    assert_false(ftl_is_read_only(cut->ftl));
    bed_free(cut);
    bed_free(bed);
}
