/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads of hosts that never pause must not delay other operations for ever. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "lib/random.h"
#include "tests/unit/firmware/ftl/ftl_bed.h"

enum {
    READERS = 6,      /* operations that are always in progress */
    READS_MAX = 3000, /* reads that may end while one write becomes durable */
};

static struct bed *new_full(uint8_t dies)
{
    const struct bed_config config = {
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
    struct bed *bed = bed_new(&config);

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
        struct bed *bed = new_full(dies);

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
