/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Programs are held, because they fail although the flash is intact.  Writes
 * that need a free slot fail.  Others succeed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "storage/ftl/state.h"
#include "storage/ftl/ops/ops.h"
#include "tests/unit/storage/ftl/ftl_bed.h"

/* A unit on flash, and programs that are held until the test ends this. */
static struct bed *new_held_bed(void)
{
    struct bed *bed = bed_new_seeded(&bed_small, 1);

    bed_write(bed, 0, BED_SECTORS);
    bed_flush(bed);
    bed_settle(bed);
    bed->ftl->hold.failed_rounds = UINT32_MAX;
    bed->ftl->hold.retry_us = UINT64_MAX;
    assert_true(ftl_is_held(&bed->ftl->ops_floor));
    return bed;
}

static void end_hold(struct bed *bed)
{
    bed->ftl->hold.failed_rounds = 0;
    bed->ftl->hold.retry_us = 0;
}

static void check_and_free(struct bed *bed)
{
    bed_flush(bed);
    bed_check(bed);
    bed_free(bed);
}

static bool is_filling(const struct bed *bed)
{
    uint32_t entry = bed->ftl->map[0];

    return ftl_is_in_slot(entry) &&
           bed->ftl->buffer.slots[(uint16_t)entry].state == FTL_SLOT_FILLING;
}

/* Read a part of the unit into a slot from dies that make no progress. */
static struct bed_io *start_fill(struct bed *bed)
{
    struct bed_io *io;

    bed->held_dies = 3;
    io = bed_submit_write(bed, 0, 3, false);
    while (!is_filling(bed)) {
        assert_true(bed_step(bed));
    }
    /* The bed would begin no other write of the unit, but the translation layer
     * keeps the order. */
    bed->unit[0].is_busy = false;
    return io;
}

static void expect_success_after_fill(struct bed *bed, struct bed_io *part,
                                      struct bed_io *other)
{
    while (bed_step(bed)) {
    }
    assert_true(is_filling(bed));
    assert_false(other->is_done);
    bed->held_dies = 0;
    assert_int_equal(bed_wait(bed, part), MEDIA_OK);
    assert_int_equal(bed_wait(bed, other), MEDIA_OK);
}

static void test_a_write_that_waits_for_a_read_succeeds(void **state)
{
    struct bed *bed = new_held_bed();
    struct bed_io *part = start_fill(bed);
    struct bed_io *whole = bed_submit_write(bed, 0, BED_SECTORS, false);

    (void)state;
    expect_success_after_fill(bed, part, whole);
    end_hold(bed);
    check_and_free(bed);
}

static void test_a_trim_that_waits_for_a_read_succeeds(void **state)
{
    struct bed *bed = new_held_bed();
    struct bed_io *part = start_fill(bed);
    struct bed_io *trim =
        bed_submit_trim(bed, MEDIA_DEALLOCATE, 0, BED_SECTORS, false);

    (void)state;
    expect_success_after_fill(bed, part, trim);
    end_hold(bed);
    check_and_free(bed);
}

static void test_a_write_that_needs_a_free_slot_fails(void **state)
{
    struct bed *bed = new_held_bed();
    uint64_t lba = (uint64_t)bed_small.buffer_units * BED_SECTORS;

    (void)state;
    for (uint64_t at = 0; at < lba; at += BED_SECTORS) {
        bed_write(bed, at, BED_SECTORS);
    }
    assert_int_equal(
        bed_wait(bed, bed_submit_write(bed, lba, BED_SECTORS, false)),
        MEDIA_WRITE_ERROR);
    end_hold(bed);
    bed_write(bed, lba, BED_SECTORS);
    check_and_free(bed);
}
