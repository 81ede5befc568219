/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Neither reads of hosts that never pause nor a long trim may delay the
 * operations of others.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "lib/random.h"
#include "tests/unit/storage/ftl/ftl_bed.h"

enum {
    READERS = 6,      /* operations that are always in progress */
    READS_MAX = 3000, /* reads that may end while one write becomes durable */
};

static struct bed_config full_config(uint8_t dies)
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
        .num_requests = 8,
        .checkpoint_superblocks = 2,
        .seed = 3,
    };
}

static struct bed *new_full(const struct bed_config *config)
{
    struct bed *bed = bed_new(config);

    for (uint32_t i = 0; i < 2 * bed->units; i++) {
        bed_write(bed, (uint64_t)(i * 7 % bed->units) * BED_SECTORS,
                  BED_SECTORS);
    }
    bed_flush(bed);
    return bed;
}

/* Step until an operation has ended, while hosts read. @return its status */
static enum media_status wait_beside_reads(struct bed *bed, struct bed_io *io)
{
    struct bed_io *reader[READERS] = {NULL};
    unsigned int reads = 0;

    while (!io->is_done) {
        for (unsigned int i = 0; i < READERS; i++) {
            if (reader[i] != NULL && reader[i]->is_done) {
                assert_int_equal(reader[i]->status, MEDIA_OK);
                reader[i]->is_used = false;
                reader[i] = NULL;
                reads++;
            }
            if (reader[i] == NULL) {
                reader[i] = bed_submit_read(bed, (reads * 8U + i) % 64 * 8,
                                            BED_IO_SECTORS);
            }
        }
        (void)bed_step(bed);
        if (reads > READS_MAX) {
            fail_msg("An operation waits for ever behind reads.");
        }
    }
    io->is_used = false;
    bed_wait_all(bed);
    return io->status;
}

static void test_a_flush_does_not_wait_for_all_reads(void **state)
{
    (void)state;
    for (uint8_t dies = 2; dies <= 4; dies += 2) {
        struct bed_config config = full_config(dies);
        struct bed *bed = new_full(&config);

        for (uint32_t i = 0; i < 60; i++) {
            (void)bed_submit_write(bed, (uint64_t)(i * 3 % bed->units) * 8, 8,
                                   false);
            bed_wait_all(bed);
            assert_int_equal(wait_beside_reads(bed, bed_submit_flush(bed)),
                             MEDIA_OK);
        }
        bed_check(bed);
        bed_free(bed);
    }
}

/* ---- Long trims.  They take one unit in each step. */

enum { TRIMMED = 100 };

static struct bed *new_with_seed(uint64_t seed)
{
    struct bed_config config = full_config(2);

    config.trims_per_step = 1;
    config.seed = seed;
    return new_full(&config);
}

static struct bed *new_with_long_trims(void)
{
    return new_with_seed(3);
}

/* Begin to trim the first units of the medium. */
static struct bed_io *begin_long_trim(struct bed *bed)
{
    struct bed_io *trim =
        bed_submit_trim(bed, MEDIA_DEALLOCATE, 0, TRIMMED * BED_SECTORS, false);

    for (unsigned int i = 0; i < 5; i++) {
        (void)bed_step(bed);
    }
    assert_false(trim->is_done);
    return trim;
}

static struct bed_io *write_unit(struct bed *bed, uint32_t unit, bool fua)
{
    return bed_submit_write(bed, (uint64_t)unit * BED_SECTORS, BED_SECTORS,
                            fua);
}

static void test_other_blocks_are_written_during_a_long_trim(void **state)
{
    struct bed *bed = new_with_long_trims();
    struct bed_io *trim = begin_long_trim(bed);
    struct bed_io *short_trim;

    (void)state;
    assert_int_equal(bed_wait(bed, write_unit(bed, TRIMMED, false)), MEDIA_OK);
    short_trim = bed_submit_trim(
        bed, MEDIA_DEALLOCATE, (TRIMMED + 1) * BED_SECTORS, BED_SECTORS, false);
    assert_int_equal(bed_wait(bed, short_trim), MEDIA_OK);
    assert_int_equal(bed_wait(bed, write_unit(bed, TRIMMED + 2, true)),
                     MEDIA_OK);
    bed_flush(bed);
    assert_false(trim->is_done);
    assert_int_equal(bed_wait(bed, trim), MEDIA_OK);
    bed_check(bed);
    bed_free(bed);
}

static void test_what_a_long_trim_has_passed_is_written_at_once(void **state)
{
    struct bed *bed = new_with_long_trims();
    struct bed_io *trim = begin_long_trim(bed);

    (void)state;
    assert_int_equal(bed_wait(bed, write_unit(bed, 0, false)), MEDIA_OK);
    assert_false(trim->is_done);
    assert_int_equal(bed_wait(bed, trim), MEDIA_OK);
    bed_check(bed);
    bed_free(bed);
}

static void test_a_long_trim_does_not_trim_what_is_written_later(void **state)
{
    struct bed *bed = new_with_long_trims();
    struct bed_io *trim = begin_long_trim(bed);
    struct bed_io *both, *after;

    (void)state;
    /* It waits for the trim because of its first unit, ... */
    both = bed_submit_write(bed, (TRIMMED - 1) * BED_SECTORS, 2 * BED_SECTORS,
                            false);
    /* ... and this one waits for it because of its second one. */
    after = write_unit(bed, TRIMMED, false);
    assert_int_equal(bed_wait(bed, write_unit(bed, TRIMMED + 1, false)),
                     MEDIA_OK);
    assert_false(trim->is_done || both->is_done || after->is_done);
    bed_wait_all(bed);
    bed_flush(bed);
    bed_check(bed);
    bed_mount(bed);
    bed_check(bed);
    bed_free(bed);
}

/*
 * The trim begins with a part of a unit, and waits for its old contents.  The
 * bed would wait, too, so that its oracle knows what parts of units have, but
 * the writes are those of whole units.  The seed decides which of them have
 * their data in one piece; such a write may begin when it is submitted.
 */
static void test_a_trim_that_waits_for_a_read_is_older_than_later_writes(
    void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 16; seed++) {
        struct bed *bed = new_with_seed(seed);
        struct bed_io *trim = bed_submit_trim(bed, MEDIA_DEALLOCATE, 4,
                                              20 * BED_SECTORS - 4, false);

        (void)bed_step(bed);
        for (uint32_t unit = 1; unit < 20; unit++) {
            bed->unit[unit].is_busy = false;
        }
        for (uint32_t unit = 1; unit < 20; unit += 4) {
            (void)write_unit(bed, unit, false);
        }
        assert_int_equal(bed_wait(bed, write_unit(bed, TRIMMED, true)),
                         MEDIA_OK);
        assert_int_equal(bed_wait(bed, trim), MEDIA_OK);
        bed_wait_all(bed);
        bed_check(bed);
        bed_free(bed);
    }
}

/* Two of them take turns. */
static void test_a_long_trim_does_not_wait_for_another_one(void **state)
{
    struct bed *bed = new_with_long_trims();
    struct bed_io *trim = begin_long_trim(bed);
    struct bed_io *other =
        bed_submit_trim(bed, MEDIA_WRITE_ZEROES, TRIMMED * BED_SECTORS,
                        20 * BED_SECTORS, false);

    (void)state;
    assert_int_equal(bed_wait(bed, other), MEDIA_OK);
    assert_false(trim->is_done);
    bed_wait_all(bed);
    bed_check(bed);
    bed_free(bed);
}

static void test_long_trims_among_other_operations_are_right(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= bed_setting("FTL_SEEDS", 12); seed++) {
        struct bed_config config = full_config((uint8_t)(2 + seed % 3));
        struct bed *bed;

        config.trims_per_step = (uint32_t)(1 + seed % 5);
        config.has_metadata = seed % 2 == 0;
        config.has_marks = seed % 3 == 0;
        config.chain = seed % 4 * 3;
        config.seed = seed;
        bed = new_full(&config);
        for (unsigned int i = 0; i < 12; i++) {
            bed_use(bed, seed * 100 + i, 25);
            bed_wait_all(bed);
            bed_flush(bed);
            bed_check(bed);
        }
        bed_mount(bed);
        bed_check(bed);
        bed_free(bed);
    }
}
