/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The error log in flash: the newest 64 entries, oldest first, in sectors that
 * are used in turn.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "firmware/store/error_log.h"
#include "firmware/store/flash_layout.h"
#include "tests/test_fixture.h"

#define PART_ADDR  FLASH_ERROR_LOG_ADDR
#define PART_BYTES FLASH_ERROR_LOG_SIZE
#define PART_PAGE  FLASH_PAGE_BYTES
#include "tests/unit/firmware/store/flash_part.h"

enum { SECTOR_RECORDS = 63 };

static struct error_record record_of(uint32_t n)
{
    return (struct error_record){
        .count = n,
        .lba = UINT64_C(0x123456789a) + n,
        .time_ms = UINT64_C(0x18000000000) + n,
        .nsid = 3 * n,
        .sqid = (uint16_t)(5 * n),
        .cid = (uint16_t)(7 * n),
        .status = 0x4002,
        .location = 40,
        .trtype = 1,
        .vendor_log = 0xc1,
        .has_time = n & 1,
        .owner = 0xfedcba00 + n,
    };
}

static void expect_up_to(uint32_t last)
{
    struct records_place place;
    struct error_records errors;

    store_read_errors(&flash, &place, &errors);
    assert_in_range(errors.count, MIN(last, (uint32_t)STORE_ERRORS_SURE),
                    MIN(last, (uint32_t)STORE_ERRORS));
    for (uint16_t i = 0; i < errors.count; i++) {
        const struct error_record *is = &errors.record[i];
        struct error_record wanted = record_of(last - errors.count + 1 + i);

        assert_int_equal(is->count, wanted.count);
        assert_int_equal(is->lba, wanted.lba);
        assert_int_equal(is->time_ms, wanted.time_ms);
        assert_int_equal(is->nsid, wanted.nsid);
        assert_int_equal(is->sqid, wanted.sqid);
        assert_int_equal(is->cid, wanted.cid);
        assert_int_equal(is->status, wanted.status);
        assert_int_equal(is->location, wanted.location);
        assert_int_equal(is->trtype, wanted.trtype);
        assert_int_equal(is->vendor_log, wanted.vendor_log);
        assert_int_equal(is->has_time, wanted.has_time);
        assert_int_equal(is->owner, wanted.owner);
    }
}

static bool write_up_to(struct records_place *place, uint32_t from,
                        uint32_t last)
{
    for (uint32_t n = from; n <= last; n++) {
        struct error_record record = record_of(n);

        if (!store_write_error(&flash, place, &record)) {
            return false;
        }
    }
    return true;
}

static void test_a_new_drive_has_no_errors(void **state)
{
    (void)state;
    expect_up_to(0);
}

static void test_the_newest_are_read_back(void **state)
{
    struct records_place place;
    struct error_records ignored;

    (void)state;
    store_read_errors(&flash, &place, &ignored);
    for (uint32_t n = 1; n <= 400; n++) {
        assert_true(write_up_to(&place, n, n));
        expect_up_to(n);
    }
}

/* All sectors wear equally: the first is used again after the last. */
static void test_sectors_are_used_in_turn(void **state)
{
    const uint32_t sectors = FLASH_ERROR_LOG_SIZE / FLASH_SECTOR_BYTES;
    const uint32_t all = sectors * SECTOR_RECORDS;
    struct records_place place;
    struct error_records ignored;

    (void)state;
    store_read_errors(&flash, &place, &ignored);
    assert_true(write_up_to(&place, 1, all));
    assert_int_equal(erasures, sectors);
    expect_up_to(all);
    assert_true(write_up_to(&place, all + 1, all + 1));
    expect_up_to(all + 1);
    assert_true(write_up_to(&place, all + 2, all + 2 * SECTOR_RECORDS));
    expect_up_to(all + 2 * SECTOR_RECORDS);
    assert_int_equal(erasures, sectors + 2);
}

/* The power fails after each byte of the first record of the next sector. */
static void test_a_power_cut_loses_one_error_at_most(void **state)
{
    static uint8_t before[sizeof(part)];
    struct records_place place;
    struct error_records errors;
    const uint32_t full = 2 * SECTOR_RECORDS;

    (void)state;
    store_read_errors(&flash, &place, &errors);
    assert_true(write_up_to(&place, 1, full));
    memcpy(before, part, 4 * FLASH_SECTOR_BYTES);
    for (size_t cut = 0;; cut += cut > 200 && cut < 4000 ? 98 : 1) {
        bool is_written;

        memcpy(part, before, 4 * FLASH_SECTOR_BYTES);
        store_read_errors(&flash, &place, &errors);
        bytes_left = cut;
        is_written = write_up_to(&place, full + 1, full + 1);
        bytes_left = NEVER;
        store_read_errors(&flash, &place, &errors);
        assert_true(errors.count >= SECTOR_RECORDS);
        assert_int_equal(errors.record[errors.count - 1].count,
                         full + is_written);
        assert_true(write_up_to(&place, full + 2, full + 2));
        store_read_errors(&flash, &place, &errors);
        assert_int_equal(errors.record[errors.count - 1].count, full + 2);
        if (is_written) {
            break;
        }
    }
}

TEST_FIXTURE(blank_part, NULL)
