/* SPDX-License-Identifier: BSD-2-Clause */
/* The file of an array as the flash of a translation layer, whose part the test
 * plays. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/test_fixture.h"
#include "tools/nand/array_flash.h"
#include "tools/nand/space.h"

enum { UNITS = 4 };

static const char path[] = "test_array_flash.img";
static const char said_path[] = "test_array_flash.said";

static struct image image;
static struct array_flash flash;
static uint8_t data[UNITS][FTL_UNIT_DATA];
static enum ftl_flash_status last_status;

void ftl_flash_done(struct ftl *ftl, uint32_t cookie,
                    enum ftl_flash_status status, uint8_t failed_planes)
{
    (void)ftl;
    (void)cookie;
    (void)failed_planes;
    last_status = status;
}

/* create_image() asks; there is no translation layer whose map must fit. */
bool space_is_mapped(const char *file, const struct wishes *wishes)
{
    (void)file;
    (void)wishes;
    return true;
}

static int setup(void **state)
{
    const struct wishes wishes = {.capacity_bytes = 64 << 20,
                                  .profile = "slc",
                                  .channels = 1,
                                  .dies = 1,
                                  .seed = 1};

    (void)state;
    (void)unlink(path);
    assert_int_equal(create_image(path, &wishes), STATUS_OK);
    assert_true(image_open(&image, path, true));
    assert_true(array_flash_open(&flash, &image));
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    array_flash_close(&flash);
    image_close(&image);
    (void)unlink(path);
    (void)unlink(said_path);
    return 0;
}

TEST_FIXTURE(setup, teardown)

/* Execute an operation of plane 0. */
static enum ftl_flash_status run_op(enum ftl_flash_kind kind, uint16_t block,
                                    uint16_t wordline)
{
    struct ftl_flash_unit units[UNITS] = {{0}};
    struct ftl_flash_op op = {.kind = (uint8_t)kind,
                              .planes = 1,
                              .block = block,
                              .wordline = wordline,
                              .units = units};

    if (kind != FTL_FLASH_ERASE) {
        op.num_units = image.file.geometry.units;
    }
    for (uint8_t i = 0; i < op.num_units; i++) {
        units[i].data = data[i];
        units[i].length = FTL_UNIT_DATA;
        units[i].unit = i;
    }
    assert_true(array_flash_submit(&flash, &op));
    assert_true(array_flash_run(&flash));
    return last_status;
}

/* Redirect the standard error to a file, and back. */
static int hold_errors(void)
{
    int kept = dup(STDERR_FILENO);

    assert_non_null(freopen(said_path, "w", stderr));
    return kept;
}

static void release_errors(int kept, char *said, size_t len)
{
    FILE *file;

    fflush(stderr);
    assert_true(dup2(kept, STDERR_FILENO) >= 0);
    close(kept);
    file = fopen(said_path, "r");
    assert_non_null(file);
    said[fread(said, 1, len - 1, file)] = '\0';
    fclose(file);
}

static void test_array_flash_reports_a_rule_that_is_broken(void **state)
{
    char said[1000];
    int kept;

    (void)state;
    assert_int_equal(run_op(FTL_FLASH_ERASE, 5, 0), FTL_FLASH_OK);
    assert_int_equal(run_op(FTL_FLASH_PROGRAM, 5, 0), FTL_FLASH_OK);
    assert_false(flash.rule_broken);
    kept = hold_errors();
    assert_int_equal(run_op(FTL_FLASH_PROGRAM, 5, 0), FTL_FLASH_ERROR);
    release_errors(kept, said, sizeof(said));
    assert_true(flash.rule_broken);
    assert_string_equal(
        said, "essd-nand: test_array_flash.img: bug in the translation layer: "
              "the flash refused a program of channel 0, die 0, block 5, "
              "wordline 0: it is not the next wordline of an erased block "
              "(rule 1); please report this\n");
    assert_int_equal(run_op(FTL_FLASH_READ, 5, 0), FTL_FLASH_OK);
}
