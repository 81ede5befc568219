/* SPDX-License-Identifier: BSD-2-Clause */
/* What a start does with the record of an area, on copies that the test plays.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "firmware/store/area_restore.h"

enum { SEQUENCE = 17, LEN = 3 };

static const struct area area = {"TESTAREA", 0x1000, 2, 4096, 0x8000};
static const struct flash flash;
static struct log log_of_test;
static const uint8_t record[LEN] = {1, 2, 3};

static enum area_repair found_repair;
static unsigned int repairs;
static unsigned int lines;
static char last_line[256];

enum area_repair area_repair(const struct flash *on, const struct area *of,
                             uint32_t *sequence, const uint8_t *buf, size_t len)
{
    assert_ptr_equal(on, &flash);
    assert_ptr_equal(of, &area);
    assert_int_equal(*sequence, SEQUENCE);
    assert_ptr_equal(buf, record);
    assert_int_equal(len, LEN);
    repairs++;
    return found_repair;
}

void log_line(struct log *log, const char *format, ...)
{
    va_list args;

    assert_ptr_equal(log, &log_of_test);
    lines++;
    va_start(args, format);
    (void)vsnprintf(last_line, sizeof(last_line), format, args);
    va_end(args);
}

/* @return whether the newest record is lost */
static bool restore_record(enum area_result state, enum area_repair repair)
{
    const struct area_found found = {state, record, LEN};
    uint32_t sequence = SEQUENCE;

    found_repair = repair;
    repairs = 0;
    lines = 0;
    return area_restore(&flash, &log_of_test, &area, "sanitize", &sequence,
                        &found);
}

static void test_a_record_that_was_read_is_repaired_and_told(void **state)
{
    static const struct {
        enum area_repair repair;
        const char *line; /* NULL: none */
    } rows[] = {
        {AREA_REPAIR_NONE, NULL},
        {AREA_REPAIR_FINISHED, "sanitize: a copy of the record in flash was "
                               "missing, and was written"},
        {AREA_REPAIR_DAMAGE,
         "sanitize: a copy of the record in flash was damaged, and was written "
         "again; the record is complete"},
        {AREA_REPAIR_FAILED,
         "sanitize: writing a copy of the record in flash again failed; the "
         "record in force is complete"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        assert_false(restore_record(AREA_OK, rows[i].repair));
        assert_int_equal(repairs, 1);
        assert_int_equal(lines, rows[i].line != NULL);
        if (rows[i].line != NULL) {
            assert_string_equal(last_line, rows[i].line);
        }
    }
}

/* A repair would spread the older record, or none. */
static void test_without_the_newest_record_nothing_is_repaired(void **state)
{
    (void)state;
    assert_true(restore_record(AREA_OLDER, AREA_REPAIR_NONE));
    assert_int_equal(repairs + lines, 0);
    assert_true(restore_record(AREA_DAMAGED, AREA_REPAIR_NONE));
    assert_int_equal(repairs + lines, 0);
    assert_false(restore_record(AREA_EMPTY, AREA_REPAIR_NONE));
    assert_int_equal(repairs + lines, 0);
}
