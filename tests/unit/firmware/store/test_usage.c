/* SPDX-License-Identifier: BSD-2-Clause */
/* SMART's counters on a flash whose power can fail in the middle of a write. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "firmware/store/flash_layout.h"
#include "firmware/store/usage.h"
#include "tests/test_fixture.h"

#define PART_ADDR  0u
#define PART_BYTES 0x30000u
#define PART_PAGE  FLASH_PAGE_BYTES
#include "tests/unit/firmware/store/flash_part.h"

static struct usage usage_of(uint32_t n)
{
    return (struct usage){
        .on_minutes = n,
        .unsafe_shutdowns = n / 3,
        .is_in_use = n & 1,
        .in_use_start = 13 * n,
        .read_blocks_512 = UINT64_C(0x100000000) + n,
        .written_blocks_512 = UINT64_C(0x200000000) + n,
        .host_reads = UINT64_C(0x300000000) + n,
        .host_writes = UINT64_C(0x400000000) + n,
        .media_errors = 7 * n,
        .error_log_entries = 9 * n,
        .lba_generation = 11 * n,
    };
}

static void expect_last(uint32_t n)
{
    struct records_place place;
    struct usage usage, wanted = n == 0 ? (struct usage){0} : usage_of(n);

    store_read_usage(&flash, &place, &usage);
    assert_int_equal(usage.on_minutes, wanted.on_minutes);
    assert_int_equal(usage.unsafe_shutdowns, wanted.unsafe_shutdowns);
    assert_int_equal(usage.is_in_use, wanted.is_in_use);
    assert_int_equal(usage.in_use_start, wanted.in_use_start);
    assert_int_equal(usage.read_blocks_512, wanted.read_blocks_512);
    assert_int_equal(usage.written_blocks_512, wanted.written_blocks_512);
    assert_int_equal(usage.host_reads, wanted.host_reads);
    assert_int_equal(usage.host_writes, wanted.host_writes);
    assert_int_equal(usage.media_errors, wanted.media_errors);
    assert_int_equal(usage.error_log_entries, wanted.error_log_entries);
    assert_int_equal(usage.lba_generation, wanted.lba_generation);
}

static bool write_one(uint32_t n)
{
    struct records_place place;
    struct usage ignored, usage = usage_of(n);

    store_read_usage(&flash, &place, &ignored);
    return store_write_usage(&flash, &place, &usage);
}

static void test_the_counters_of_a_new_drive_are_zero(void **state)
{
    (void)state;
    expect_last(0);
}

static void test_the_last_record_is_valid_across_sectors(void **state)
{
    (void)state;
    for (uint32_t n = 1; n <= 300; n++) {
        assert_true(write_one(n));
        expect_last(n);
    }
    assert_int_equal(erasures, 5); /* 63 records each */
}

static void test_erasures_that_a_tool_has_added_need_no_other_use(void **state)
{
    static const uint32_t added[] = {1, 0x12345, USAGE_ADDED_MOST};
    struct records_place place;
    struct usage usage = usage_of(1);

    (void)state;
    for (uint32_t i = 0; i < ARRAY_LEN(added); i++) {
        struct usage found;

        store_read_usage(&flash, &place, &found);
        usage.flash.added_erasures = added[i];
        assert_true(store_write_usage(&flash, &place, &usage));
        store_read_usage(&flash, &place, &found);
        assert_int_equal(found.flash.added_erasures, added[i]);
        assert_int_equal(found.flash.read_units, 0);
        expect_last(1);
    }
}

static void test_one_place_serves_many_records(void **state)
{
    struct records_place place;
    struct usage usage;

    (void)state;
    store_read_usage(&flash, &place, &usage);
    for (uint32_t n = 1; n <= 200; n++) {
        usage = usage_of(n);
        assert_true(store_write_usage(&flash, &place, &usage));
        expect_last(n);
    }
}

/*
 * The power fails after each byte of a record, and of the change to the other
 * sector.
 */
static void test_a_power_cut_leaves_the_old_values_or_the_new(void **state)
{
    static uint8_t before[PART_BYTES];

    (void)state;
    for (uint32_t first = 0; first <= 126; first += 63) {
        blank_part(NULL);
        for (uint32_t n = 1; n <= first; n++) {
            assert_true(write_one(n));
        }
        memcpy(before, part, sizeof(before));
        for (size_t cut = 0;; cut += cut > 200 && cut < 4000 ? 98 : 1) {
            struct records_place place;
            struct usage usage;
            bool is_written;

            memcpy(part, before, sizeof(before));
            bytes_left = cut;
            is_written = write_one(first + 1);
            bytes_left = NEVER;
            store_read_usage(&flash, &place, &usage);
            assert_true(usage.on_minutes == first + is_written);
            /* The next record can be written. */
            assert_true(write_one(first + 2));
            expect_last(first + 2);
            if (is_written) {
                break;
            }
        }
    }
}

static void test_damaged_records_are_skipped(void **state)
{
    (void)state;
    assert_true(write_one(1));
    assert_true(write_one(2));
    part[FLASH_USAGE_A_ADDR + 64 + 64] ^= 1;
    expect_last(1);
    assert_true(write_one(3));
    expect_last(3);
    part[FLASH_USAGE_A_ADDR] ^= 3; /* the sector is not valid any more */
    expect_last(0);
}

/* Each bit of the header of each sector flips, when `count` records are there.
 */
static void expect_all_with_a_flipped_bit(uint32_t count)
{
    static uint8_t before[PART_BYTES];

    for (uint32_t n = 1; n <= count; n++) {
        assert_true(write_one(n));
    }
    memcpy(before, part, sizeof(before));
    for (uint32_t bit = 0; bit < 2 * 16 * 8; bit++) {
        part[(bit % 2 == 0 ? FLASH_USAGE_A_ADDR : FLASH_USAGE_B_ADDR) +
             bit / 16] ^= (uint8_t)BIT(bit / 2 % 8);
        expect_last(count);
        for (uint32_t n = count + 1; n <= count + 2; n++) {
            assert_true(write_one(n));
            expect_last(n);
        }
        memcpy(part, before, sizeof(before));
    }
}

static void test_a_flipped_bit_in_a_header_hides_no_record(void **state)
{
    static const uint32_t counts[] = {1,
                                      RECORDS_IN_SECTOR - 1,
                                      RECORDS_IN_SECTOR,
                                      RECORDS_IN_SECTOR + 1,
                                      2 * RECORDS_IN_SECTOR,
                                      2 * RECORDS_IN_SECTOR + 1};

    for (size_t i = 0; i < ARRAY_LEN(counts); i++) {
        blank_part(state);
        expect_all_with_a_flipped_bit(counts[i]);
    }
}

TEST_FIXTURE(blank_part, NULL)

/* Bytes of all fields of the counters; padding may follow them. */
enum {
    FLASH_FIELDS = offsetof(struct usage_flash, added_erasures) +
                   sizeof(((struct usage_flash *)NULL)->added_erasures),
};

static void test_the_counters_of_nand_flash_have_records_of_their_own(
    void **state)
{
    struct records_place place;
    struct usage usage, found;

    (void)state;
    store_read_usage(&flash, &place, &usage);
    for (uint32_t n = 1; n <= 200; n++) {
        usage = usage_of(n);
        usage.flash = (struct usage_flash){n,     n + 1, n + 2, n + 3, n + 4,
                                           n + 5, n + 6, n + 7, n + 8};
        assert_true(store_write_usage(&flash, &place, &usage));
        store_read_usage(&flash, &place, &found);
        assert_memory_equal(&found.flash, &usage.flash, FLASH_FIELDS);
        expect_last(n);
    }
}
