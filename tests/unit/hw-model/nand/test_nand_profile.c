/* SPDX-License-Identifier: BSD-2-Clause */
/* Profiles of NAND parts, and geometries made of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "hw-model/nand/nand_profile.h"

#define GIB (UINT64_C(1) << 30)

static void test_every_profile_is_consistent(void **state)
{
    (void)state;
    for (unsigned int i = 0; i < nand_profile_count(); i++) {
        const struct nand_profile *p = nand_profile(i);

        assert_ptr_equal(nand_profile_find(p->name), p);
        assert_true(p->planes >= 1 && p->planes <= 4);
        assert_true(p->units >= 1 && p->units <= 4);
        assert_true(p->native.pages >= 1 &&
                    p->native.pages <= NAND_PROFILE_PAGES);
        assert_true(p->slc.pages <= 1);
        /* nand_op_check() says which blocks an erase waits for. */
        assert_true(p->native.erase_ns >= p->slc.erase_ns);
        assert_true(p->steps <= NAND_PROFILE_STEPS);
        for (unsigned int step = 0; step < p->steps; step++) {
            assert_true(p->bits[step] < p->bits[step + 1]);
        }
        for (unsigned int m = 0; m < 2; m++) {
            const struct nand_cell_mode *mode = nand_profile_mode(p, m != 0);
            unsigned int weight = 0;

            for (unsigned int page = 0; page < mode->pages; page++) {
                assert_true(mode->read_ns[page] != 0);
                weight += mode->page_weight[page];
            }
            /* The mean of the pages is the rate of the part. */
            assert_int_equal(weight, 64u * mode->pages);
        }
    }
    assert_string_equal(nand_profile(0)->name, "tlc2021");
    assert_null(nand_profile_find("tlc"));
}

static void test_a_geometry_holds_the_capacity_with_200_superblocks(
    void **state)
{
    static const uint64_t capacities[] = {GIB,      8 * GIB,    9 * GIB + 1,
                                          64 * GIB, 1000 * GIB, 4000 * GIB};

    (void)state;
    for (unsigned int i = 0; i < nand_profile_count(); i++) {
        const struct nand_profile *profile = nand_profile(i);

        for (unsigned int k = 0; k < ARRAY_LEN(capacities); k++) {
            struct nand_geometry geometry;
            enum nand_fit fit;
            uint64_t nearest, bytes;

            assert_true(nand_geometry_for(profile, capacities[k], 4, 2,
                                          &geometry, &fit, &nearest));
            assert_int_equal(fit, NAND_FITS);
            assert_true(nand_geometry_is_valid(&geometry));
            bytes = nand_geometry_bytes(&geometry);
            assert_true(bytes >= capacities[k]);
            /* Not more than one block of each plane is too many. */
            assert_true(bytes - bytes / geometry.blocks < capacities[k]);
            assert_true(geometry.blocks >= NAND_SUPERBLOCKS);
            assert_true(geometry.wordlines <= profile->wordlines);
        }
    }
}

static void test_a_small_drive_has_short_blocks(void **state)
{
    struct nand_geometry geometry;
    enum nand_fit fit;
    uint64_t nearest;

    (void)state;
    assert_true(nand_geometry_for(nand_profile(0), 8 * GIB, 4, 2, &geometry,
                                  &fit, &nearest));
    assert_int_equal(geometry.wordlines, 27);
    assert_int_equal(geometry.blocks, 203);
    assert_int_equal(nand_geometry_blocks(&geometry), 203 * 32);
    assert_true(nand_geometry_for(nand_profile(0), 4000 * GIB, 4, 2, &geometry,
                                  &fit, &nearest));
    assert_int_equal(geometry.wordlines, 704);
}

/* Whatever the shape, the smallest array has rows for the firmware. */
static void test_the_smallest_array_of_each_shape_has_enough_rows(void **state)
{
    (void)state;
    for (unsigned int i = 0; i < nand_profile_count(); i++) {
        for (unsigned int dies = 1; dies <= 16; dies++) {
            struct nand_geometry geometry;
            enum nand_fit fit;
            uint64_t nearest, none;

            assert_false(nand_geometry_for(nand_profile(i), 1, 1, dies,
                                           &geometry, &fit, &nearest));
            assert_int_equal(fit, NAND_FIT_TOO_SMALL);
            assert_true(nand_geometry_for(nand_profile(i), nearest, 1, dies,
                                          &geometry, &fit, &none));
            assert_int_equal(geometry.blocks, NAND_SUPERBLOCKS);
            assert_in_range(geometry.wordlines * dies, NAND_SUPERBLOCK_ROWS,
                            NAND_SUPERBLOCK_ROWS + dies - 1);
        }
    }
}

static void test_what_does_not_fit_is_refused_with_the_nearest(void **state)
{
    const struct nand_profile *profile = nand_profile(0);
    struct nand_geometry geometry;
    enum nand_fit fit;
    uint64_t nearest, other;

    (void)state;
    assert_false(
        nand_geometry_for(profile, GIB, 0, 1, &geometry, &fit, &nearest));
    assert_int_equal(fit, NAND_FIT_BAD_CHANNELS);
    assert_false(
        nand_geometry_for(profile, GIB, 17, 1, &geometry, &fit, &nearest));
    assert_int_equal(fit, NAND_FIT_BAD_CHANNELS);
    assert_false(
        nand_geometry_for(profile, GIB, 1, 17, &geometry, &fit, &nearest));
    assert_int_equal(fit, NAND_FIT_BAD_DIES);

    assert_false(
        nand_geometry_for(profile, GIB, 16, 16, &geometry, &fit, &nearest));
    assert_int_equal(fit, NAND_FIT_TOO_SMALL);
    assert_true(
        nand_geometry_for(profile, nearest, 16, 16, &geometry, &fit, &other));
    assert_int_equal(geometry.wordlines, 1);
    assert_false(nand_geometry_for(profile, nearest - 1, 16, 16, &geometry,
                                   &fit, &other));

    assert_false(nand_geometry_for(profile, UINT64_MAX / 2, 1, 1, &geometry,
                                   &fit, &nearest));
    assert_int_equal(fit, NAND_FIT_TOO_LARGE);
    assert_true(
        nand_geometry_for(profile, nearest, 1, 1, &geometry, &fit, &other));
    assert_int_equal(geometry.blocks, UINT16_MAX);
    assert_false(
        nand_geometry_for(profile, nearest + 1, 1, 1, &geometry, &fit, &other));
}
