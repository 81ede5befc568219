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
