/* SPDX-License-Identifier: BSD-2-Clause */
/* Areas, on a flash whose power can fail after any byte. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "firmware/store/area.h"
#include "tests/test_fixture.h"

#include <string.h>

enum { COPIES = 3, COPY_BYTES = 2 * FLASH_SECTOR_BYTES, LEN = 6000 };
#define ADDR       0x10000u
#define MIRROR     (ADDR + COPIES * COPY_BYTES)
#define PART_BYTES (MIRROR + COPIES * COPY_BYTES)
#define NEVER      SIZE_MAX

static const struct area area = {"TESTAREA", ADDR, COPIES, COPY_BYTES, 0};
static const struct area mirrored = {"TESTAREA", ADDR, COPIES, COPY_BYTES,
                                     MIRROR};
static const struct area *used; /* by write_body() and read_number() */
static struct flash flash;
static size_t bytes_left; /* bytes written until the power fails */
static unsigned int reads;
static unsigned int fails_at; /* number of the operation that fails; 0: none */
static uint8_t data[PART_BYTES], before[PART_BYTES];
static uint8_t body[LEN], back[LEN];

void flash_read(const struct flash *which, uint32_t addr, void *buf,
                size_t len_bytes)
{
    assert_ptr_equal(which, &flash);
    assert_true(addr >= ADDR && addr + len_bytes <= PART_BYTES);
    memcpy(buf, data + addr, len_bytes);
    reads++;
}

static bool spend_byte(void)
{
    if (bytes_left == 0) {
        return false;
    }
    bytes_left -= bytes_left != NEVER;
    return true;
}

static bool starts_operation(void)
{
    return fails_at == 0 || --fails_at != 0;
}

bool flash_erase_sector(const struct flash *which, uint32_t addr)
{
    (void)which;
    assert_int_equal(addr % FLASH_SECTOR_BYTES, 0);
    if (!starts_operation()) {
        return false;
    }
    for (uint32_t i = 0; i < FLASH_SECTOR_BYTES; i++) {
        if (!spend_byte()) {
            return false;
        }
        data[addr + i] = 0xff;
    }
    return true;
}

bool flash_program(const struct flash *which, uint32_t addr, const void *from,
                   size_t len_bytes)
{
    (void)which;
    if (!starts_operation()) {
        return false;
    }
    for (size_t i = 0; i < len_bytes; i++) {
        if (!spend_byte()) {
            return false;
        }
        data[addr + i] &= ((const uint8_t *)from)[i];
    }
    return true;
}

static int blank_part(void **state)
{
    (void)state;
    memset(data, 0xff, sizeof(data));
    bytes_left = NEVER;
    fails_at = 0;
    used = &area;
    return 0;
}

/* Fill the body with something that its number determines. */
static size_t make_body(uint32_t number)
{
    memset(body, (int)number, sizeof(body));
    return number % 2 != 0 ? LEN : 100;
}

static bool write_body(uint32_t number, uint32_t *sequence)
{
    size_t len = make_body(number);

    return area_write(&flash, used, sequence, body, len);
}

static enum area_result read_number(uint32_t *number, uint32_t *sequence)
{
    size_t len = 0;
    enum area_result result =
        area_read(&flash, used, back, sizeof(back), &len, sequence);

    *number = back[0];
    if (result == AREA_OK || result == AREA_OLDER) {
        assert_int_equal(len, make_body(*number));
        assert_memory_equal(back, body, len);
    }
    return result;
}

static void test_the_last_copy_is_read(void **state)
{
    uint32_t sequence = 0, found, number;

    (void)state;
    assert_int_equal(read_number(&number, &found), AREA_EMPTY);
    assert_int_equal(found, 0);
    for (uint32_t n = 1; n <= 10; n++) {
        assert_true(write_body(n, &sequence));
        assert_int_equal(sequence, n);
        assert_int_equal(read_number(&number, &found), AREA_OK);
        assert_int_equal(number, n);
        assert_int_equal(found, n);
    }
}

/*
 * The power fails after each possible byte of a write of each copy, the first
 * one included.  Then the record is the old one or, after the last byte, the
 * new one; and the next write works.
 */
static void test_the_record_is_old_or_new_whenever_power_fails(void **state)
{
    uint32_t sequence = 0, found, number;

    (void)state;
    for (uint32_t n = 1; n <= 5; n++) {
        size_t len = make_body(n);
        size_t sectors = (AREA_HEADER_LEN + len + FLASH_SECTOR_BYTES - 1) /
                         FLASH_SECTOR_BYTES;
        size_t whole = sectors * FLASH_SECTOR_BYTES + AREA_HEADER_LEN + len;

        memcpy(before, data, sizeof(data));
        for (size_t cut = 0; cut <= whole;
             cut += cut + 300 < whole && cut > 300 ? 41 : 1) {
            uint32_t next = sequence;
            bool is_done;

            bytes_left = cut;
            is_done = write_body(n, &next);
            assert_int_equal(is_done, cut == whole);
            bytes_left = NEVER;
            if (is_done) {
                assert_int_equal(read_number(&number, &found), AREA_OK);
                assert_int_equal(number, n);
            } else if (n == 1) {
                assert_int_equal(read_number(&number, &found), AREA_EMPTY);
            } else {
                assert_int_equal(read_number(&number, &found), AREA_OK);
                assert_int_equal(number, n - 1);
            }
            assert_true(write_body(n + 1, &found));
            assert_int_equal(read_number(&number, &found), AREA_OK);
            assert_int_equal(number, n + 1);
            memcpy(data, before, sizeof(data));
        }
        assert_true(write_body(n, &sequence));
    }
}

static void test_damage_is_reported(void **state)
{
    uint32_t sequence = 0, found, number;

    (void)state;
    assert_true(write_body(1, &sequence));
    data[ADDR + AREA_HEADER_LEN + 5] ^= 1;
    assert_int_equal(read_number(&number, &found), AREA_DAMAGED);
    assert_true(write_body(2, &sequence));
    assert_int_equal(read_number(&number, &found), AREA_OK);
    assert_true(write_body(3, &sequence));
    data[ADDR + 2 * COPY_BYTES + AREA_HEADER_LEN] ^= 1;
    assert_int_equal(read_number(&number, &found), AREA_OLDER);
    assert_int_equal(number, 2);
    assert_int_equal(found, 3);
    /* The next write has a higher sequence than the damaged copy. */
    assert_true(write_body(4, &found));
    assert_int_equal(read_number(&number, &found), AREA_OK);
    assert_int_equal(number, 4);
}

static void test_a_damaged_header_is_reported(void **state)
{
    uint32_t sequence = 0, found, number;

    (void)state;
    assert_true(write_body(1, &sequence));
    data[ADDR] ^= 1;
    assert_int_equal(read_number(&number, &found), AREA_DAMAGED);
}

/* A power cut while the newest copy is written leaves the older ones. */
static void test_older_copies_are_read_one_after_the_other(void **state)
{
    uint32_t sequence = 0, number = UINT32_MAX;
    size_t len;

    (void)state;
    assert_int_equal(area_newest(&flash, &area), 0);
    for (uint32_t n = 1; n <= 5; n++) {
        assert_true(write_body(n, &sequence));
    }
    assert_int_equal(area_newest(&flash, &area), 5);
    bytes_left = COPY_BYTES / 2;
    assert_false(write_body(6, &sequence));
    for (uint32_t n = 5; n >= 4; n--) { /* the place of 3 was being written */
        assert_true(area_read_older(&flash, &area, number, back, sizeof(back),
                                    &len, &number));
        assert_int_equal(number, n);
        assert_int_equal(len, make_body(n));
        assert_memory_equal(back, body, len);
    }
    assert_false(area_read_older(&flash, &area, number, back, sizeof(back),
                                 &len, &number));
}

static void test_an_older_copy_that_is_damaged_is_passed_over(void **state)
{
    uint32_t sequence = 0, number;
    size_t len;

    (void)state;
    for (uint32_t n = 1; n <= 3; n++) {
        assert_true(write_body(n, &sequence));
    }
    data[ADDR + COPY_BYTES + AREA_HEADER_LEN] ^= 1;
    assert_true(
        area_read_older(&flash, &area, 3, back, sizeof(back), &len, &number));
    assert_int_equal(number, 1);
}

static enum area_repair repair_area(uint32_t number, uint32_t *sequence)
{
    size_t len = make_body(number);

    return area_repair(&flash, used, sequence, body, len);
}

static void test_a_power_cut_leaves_one_of_two_rings(void **state)
{
    uint32_t sequence = 0, found, number;

    (void)state;
    used = &mirrored;
    for (uint32_t n = 1; n <= 5; n++) {
        uint32_t last = sequence;
        bool is_done = false;

        memcpy(before, data, sizeof(data));
        for (size_t cut = 0; !is_done; cut += cut % 4096 > 60 ? 37 : 1) {
            memcpy(data, before, sizeof(data));
            sequence = last;
            bytes_left = cut;
            is_done = write_body(n, &sequence);
            bytes_left = NEVER;
            if (n == 1 && data[ADDR + AREA_HEADER_LEN - 1] != 'A') {
                assert_int_equal(read_number(&number, &found), AREA_EMPTY);
                continue;
            }
            assert_int_equal(read_number(&number, &found), AREA_OK);
            assert_true(number == n || (number == n - 1 && !is_done));
            assert_int_equal(found, sequence);
            if (cut % 29 == 0) {
                enum area_repair was = repair_area(number, &found);

                assert_true(was == AREA_REPAIR_NONE ||
                            was == AREA_REPAIR_FINISHED);
                assert_int_equal(repair_area(number, &found), AREA_REPAIR_NONE);
                assert_int_equal(read_number(&number, &found), AREA_OK);
                assert_true(number == n || (number == n - 1 && !is_done));
            }
        }
    }
}

/* Each operation of the flash fails in turn, and the ones after it do not.  A
 * host that was told of the failure finds the old record after a restart. */
static void test_a_failed_write_does_not_count_after_a_restart(void **state)
{
    uint32_t failures = 0, sequence = 0, found, number;

    (void)state;
    used = &mirrored;
    for (uint32_t n = 1; n <= 4; n++) {
        assert_true(write_body(n, &sequence));
    }
    memcpy(before, data, sizeof(data));
    for (bool is_saved = false; !is_saved; failures += !is_saved) {
        memcpy(data, before, sizeof(data));
        sequence = 4;
        fails_at = failures + 1;
        is_saved = write_body(5, &sequence);
        assert_int_equal(is_saved, fails_at != 0);
        fails_at = 0;
        assert_int_equal(read_number(&number, &found), AREA_OK);
        assert_int_equal(number, is_saved ? 5 : 4);
        assert_true(write_body(6, &sequence));
        assert_int_equal(read_number(&number, &found), AREA_OK);
        assert_int_equal(number, 6);
    }
    assert_int_equal(failures, 8); /* two erasures and programs in each ring */
}

static void test_one_damaged_copy_changes_nothing(void **state)
{
    uint32_t sequence, found, number;

    (void)state;
    used = &mirrored;
    for (uint32_t at = 0; at < AREA_HEADER_LEN + LEN;
         at += at < AREA_HEADER_LEN + 4 ? 1 : 397) {
        for (uint32_t ring = 0; ring < 2; ring++) {
            memset(data, 0xff, sizeof(data));
            sequence = 0;
            for (uint32_t n = 1; n <= 5; n++) {
                assert_true(write_body(n, &sequence));
            }
            data[(ring == 0 ? ADDR : MIRROR) + COPY_BYTES + at] ^= 4;
            assert_int_equal(read_number(&number, &found), AREA_OK);
            assert_int_equal(number, 5);
            if (at >= 12 && at < 20) {
                continue; /* reserved bytes, which the CRC covers */
            }
            assert_int_equal(repair_area(5, &found), AREA_REPAIR_DAMAGE);
            assert_int_equal(read_number(&number, &found), AREA_OK);
            assert_int_equal(number, 5);
            assert_int_equal(repair_area(5, &found), AREA_REPAIR_NONE);
        }
    }
}

/* A place is damaged in each byte that a header uses, or in its body. */
static const uint32_t damaged[] = {
    0,  1,  2,  3,  4,
    5,  6,  7,  8,  9,
    10, 11, 20, 21, 22,
    23, 24, 25, 26, 27,
    28, 29, 30, 31, AREA_HEADER_LEN + 7,
};

static void write_five(void)
{
    uint32_t sequence = 0;

    memset(data, 0xff, sizeof(data));
    for (uint32_t n = 1; n <= 5; n++) {
        assert_true(write_body(n, &sequence));
    }
    memcpy(before, data, sizeof(data));
}

static void check_older(void)
{
    uint32_t found, number;

    assert_int_equal(read_number(&number, &found), AREA_OLDER);
    assert_int_equal(number, 4);
    assert_true(write_body(6, &found));
    assert_int_equal(read_number(&number, &found), AREA_OK);
    assert_int_equal(number, 6);
}

static void test_two_damaged_copies_are_reported(void **state)
{
    (void)state;
    used = &mirrored;
    write_five();
    for (size_t i = 0; i < ARRAY_LEN(damaged); i++) {
        for (size_t j = 0; j < ARRAY_LEN(damaged); j++) {
            for (unsigned int bit = 0; bit < 8; bit++) {
                memcpy(data, before, sizeof(data));
                data[ADDR + COPY_BYTES + damaged[i]] ^= (uint8_t)BIT(bit);
                data[MIRROR + COPY_BYTES + damaged[j]] ^= (uint8_t)BIT(7 - bit);
                check_older();
            }
        }
    }
}

/* A record with a header that is damaged is not one that was never written. */
static void test_a_first_record_that_is_damaged_is_reported(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(damaged) * 8; i++) {
        uint32_t sequence = 0, found, number;

        memset(data, 0xff, sizeof(data));
        assert_true(write_body(1, &sequence));
        data[ADDR + damaged[i / 8]] ^= (uint8_t)BIT(i % 8);
        assert_int_equal(read_number(&number, &found), AREA_DAMAGED);
    }
}

/* The newest record is lost.  The power fails at each byte of the next write,
 * or the flash refuses one of its operations: the record stays lost. */
static void check_cuts_after_loss(uint32_t number)
{
    static uint8_t lost[sizeof(data)];
    size_t cut = 0;

    memcpy(lost, data, sizeof(data));
    while (cut < 2 * (COPY_BYTES + LEN + AREA_HEADER_LEN)) {
        uint32_t found, seen;
        enum area_result result;

        memcpy(data, lost, sizeof(data));
        (void)read_number(&seen, &found);
        bytes_left = cut;
        (void)!write_body(number, &found);
        bytes_left = NEVER;
        result = read_number(&seen, &found);
        assert_true(result == AREA_OK ? seen == number : result != AREA_EMPTY);
        cut += cut % COPY_BYTES > LEN + 64 ? 61 : 1;
    }
    for (unsigned int at = 1; at < 10; at++) {
        uint32_t found, seen;

        memcpy(data, lost, sizeof(data));
        (void)read_number(&seen, &found);
        fails_at = at;
        if (!write_body(number, &found)) {
            enum area_result result = read_number(&seen, &found);

            assert_true(result == AREA_OLDER || result == AREA_DAMAGED);
        }
        fails_at = 0;
    }
    memcpy(data, lost, sizeof(data));
}

static void test_a_cut_after_a_loss_does_not_bring_an_older_record_back(
    void **state)
{
    (void)state;
    used = &mirrored;
    write_five();
    for (size_t i = 0; i < ARRAY_LEN(damaged); i++) {
        memcpy(data, before, sizeof(data));
        data[ADDR + COPY_BYTES + damaged[i]] ^= 1;
        data[MIRROR + COPY_BYTES + damaged[ARRAY_LEN(damaged) - 1 - i]] ^= 1;
        check_cuts_after_loss(6);
    }
}

static void test_a_cut_after_a_loss_of_the_first_record_leaves_no_new_drive(
    void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(damaged); i++) {
        for (unsigned int rings = 1; rings <= 2; rings++) {
            uint32_t sequence = 0;

            memset(data, 0xff, sizeof(data));
            used = rings == 1 ? &area : &mirrored;
            assert_true(write_body(1, &sequence));
            data[ADDR + damaged[i]] ^= 1;
            data[MIRROR + damaged[i]] ^= rings == 2 ? 1 : 0;
            check_cuts_after_loss(2);
        }
    }
}

/* Write the next record after a restart, and restart again. */
static void expect_next_record(uint32_t number, enum area_result before_it)
{
    uint32_t found, seen;

    assert_int_equal(read_number(&seen, &found), before_it);
    assert_true(write_body(number, &found));
    assert_int_equal(read_number(&seen, &found), AREA_OK);
    assert_int_equal(seen, number);
    assert_int_equal(repair_area(number, &found), AREA_REPAIR_NONE);
}

/* The ring comes round to the place of the lost record, twice. */
static void test_a_loss_is_reported_until_the_next_record_alone(void **state)
{
    (void)state;
    used = &mirrored;
    for (uint32_t lost = 1; lost <= 2 * COPIES; lost++) {
        for (size_t i = 0; i < ARRAY_LEN(damaged); i += 6) {
            uint32_t sequence = 0;

            memset(data, 0xff, sizeof(data));
            for (uint32_t n = 1; n <= lost; n++) {
                assert_true(write_body(n, &sequence));
            }
            data[ADDR + (lost - 1) % COPIES * COPY_BYTES + damaged[i]] ^= 1;
            data[MIRROR + (lost - 1) % COPIES * COPY_BYTES + damaged[i]] ^= 1;
            for (uint32_t n = 1; n <= 2 * COPIES + 1; n++) {
                expect_next_record(lost + n, n > 1      ? AREA_OK
                                             : lost > 1 ? AREA_OLDER
                                                        : AREA_DAMAGED);
            }
        }
    }
}

/* The power fails while the places that show a loss are erased, or the flash
 * refuses that: the next record does it. */
static void test_forgetting_a_loss_may_be_cut(void **state)
{
    static uint8_t lost[sizeof(data)];
    const size_t whole = 2 * (FLASH_SECTOR_BYTES + AREA_HEADER_LEN + 100);

    (void)state;
    used = &mirrored;
    write_five();
    data[ADDR + COPY_BYTES] ^= 1;
    data[MIRROR + COPY_BYTES] ^= 1;
    memcpy(lost, data, sizeof(data));
    for (size_t cut = 0; cut <= 2 * FLASH_SECTOR_BYTES; cut += 127) {
        uint32_t found, number;

        memcpy(data, lost, sizeof(data));
        assert_int_equal(read_number(&number, &found), AREA_OLDER);
        bytes_left = whole + cut;
        assert_true(write_body(6, &found));
        bytes_left = NEVER;
        for (uint32_t n = 7; n <= 7 + 2 * COPIES; n++) {
            expect_next_record(n, AREA_OK);
        }
    }
}

static bool shows_loss(void)
{
    return data[ADDR + COPY_BYTES + AREA_HEADER_LEN - 1] != 0xff ||
           data[MIRROR + COPY_BYTES + AREA_HEADER_LEN - 1] != 0xff;
}

/* Play a loss of record 5.  @return the sequence for the next write */
static uint32_t lose_five(void)
{
    uint32_t found, number;

    write_five();
    data[ADDR + COPY_BYTES] ^= 1;
    data[MIRROR + COPY_BYTES] ^= 1;
    assert_int_equal(read_number(&number, &found), AREA_OLDER);
    return found;
}

static void test_the_next_record_forgets_a_loss(void **state)
{
    uint32_t sequence;

    (void)state;
    used = &mirrored;
    sequence = lose_five();
    assert_true(shows_loss());
    assert_true(write_body(6, &sequence));
    assert_false(shows_loss());
}

/* The flash refuses the erasures after record 6, so both headers stay.
 * @return the sequence of record 6 */
static uint32_t write_six_beside_a_loss(void)
{
    uint32_t sequence;

    used = &mirrored;
    sequence = lose_five();
    bytes_left = 2 * (FLASH_SECTOR_BYTES + AREA_HEADER_LEN + 100);
    assert_true(write_body(6, &sequence));
    bytes_left = NEVER;
    return sequence;
}

static void test_a_start_forgets_a_loss_that_a_write_has_left(void **state)
{
    uint32_t sequence, number;

    (void)state;
    sequence = write_six_beside_a_loss();
    assert_true(shows_loss());
    assert_int_equal(read_number(&number, &sequence), AREA_OK);
    assert_int_equal(repair_area(6, &sequence), AREA_REPAIR_NONE);
    assert_false(shows_loss());
}

/* The same without a start, until the ring comes round. */
static void test_a_ring_that_comes_round_forgets_a_loss(void **state)
{
    uint32_t sequence, number;

    (void)state;
    sequence = write_six_beside_a_loss();
    for (uint32_t n = 7; n <= 7 + COPIES; n++) {
        assert_true(write_body(n, &sequence));
        assert_int_equal(read_number(&number, &sequence), AREA_OK);
        assert_int_equal(number, n);
    }
}

/* An area has up to 64 places, whose headers take long to read. */
static void test_a_write_reads_few_headers(void **state)
{
    uint32_t sequence = 0;

    (void)state;
    used = &mirrored;
    for (uint32_t n = 1; n <= 2 * COPIES; n++) {
        reads = 0;
        assert_true(write_body(n, &sequence));
        assert_true(n == 1 || reads <= 2);
    }
}

/* Older firmware has written one ring only. */
static void test_a_kept_drive_gets_its_mirror(void **state)
{
    uint32_t sequence = 0, found, number;

    (void)state;
    for (uint32_t n = 1; n <= 4; n++) {
        assert_true(write_body(n, &sequence));
    }
    used = &mirrored;
    memcpy(before, data, sizeof(data));
    assert_int_equal(read_number(&number, &found), AREA_OK);
    assert_int_equal(number, 4);
    assert_int_equal(repair_area(4, &found), AREA_REPAIR_FINISHED);
    assert_int_equal(repair_area(4, &found), AREA_REPAIR_NONE);
    data[ADDR + COPY_BYTES] ^= 1;
    assert_int_equal(read_number(&number, &found), AREA_OK);
    assert_int_equal(number, 4);
    /* The header of its newest copy is damaged before that start. */
    memcpy(data, before, sizeof(data));
    data[ADDR] ^= 1;
    assert_int_equal(read_number(&number, &found), AREA_OLDER);
    assert_int_equal(number, 3);
}

TEST_FIXTURE(blank_part, NULL)
