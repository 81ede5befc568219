/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Persistent events in flash: the newest ones come back whole, oldest first,
 * whenever the power fails.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "firmware/store/event_log.h"
#include "firmware/store/flash_layout.h"
#include "tests/test_fixture.h"

#define PART_ADDR  FLASH_EVENTS_ADDR
#define PART_BYTES FLASH_EVENTS_SIZE
#define PART_PAGE  0x2000000u /* an event may cross pages */
#include "tests/unit/firmware/store/flash_part.h"

enum { LONGEST = 536, SHORTEST = 32 };

static struct event_records events;

/* The length and the bytes of an event depend on its number. */
static uint16_t event_of(uint32_t number, uint8_t *event)
{
    uint16_t len =
        (uint16_t)(number % 7 == 0 ? LONGEST : SHORTEST + number % 90);

    for (uint16_t i = 0; i < len; i++) {
        event[i] = (uint8_t)(number * 31 + i * 7);
    }
    return len;
}

static bool write_event(struct records_place *place, uint32_t number)
{
    uint8_t event[LONGEST], record[RECORD_DATA_LEN];
    uint16_t len = event_of(number, event);

    for (unsigned int i = 0; i < event_part_count(len); i++) {
        event_part_emit(record, number, event, len, i);
        if (!store_write_event_part(&flash, place, record)) {
            return false;
        }
    }
    return true;
}

/* Check that the events in flash are right and have no gap. @return the number
 * of the newest; *count is set to how many there are */
static uint32_t newest_event(uint32_t *count)
{
    struct records_place place;
    const uint8_t *event;
    uint32_t number, before = 0;
    uint16_t len;
    size_t at = 0;

    *count = 0;
    store_read_events(&flash, &place, &events);
    while (event_records_next(&events, &at, &number, &event, &len)) {
        uint8_t wanted[LONGEST];

        assert_true(before == 0 || number == before + 1);
        assert_int_equal(len, event_of(number, wanted));
        assert_memory_equal(event, wanted, len);
        before = number;
        (*count)++;
    }
    return before;
}

/* Check that event `last` is the newest. @return how many there are */
static uint32_t expect_up_to(uint32_t last)
{
    uint32_t count;

    assert_int_equal(newest_event(&count), last);
    return count;
}

static void test_a_new_drive_has_no_events(void **state)
{
    (void)state;
    assert_int_equal(expect_up_to(0), 0);
}

static void test_the_newest_events_come_back(void **state)
{
    struct records_place place;

    (void)state;
    store_read_events(&flash, &place, &events);
    for (uint32_t n = 1; n <= 900; n++) {
        assert_true(write_event(&place, n));
        if (n % 50 == 0) {
            assert_true(expect_up_to(n) >= MIN(n, 200u));
        }
    }
}

/* All events of the log page survive a restart, even the shortest ones. */
static void test_a_full_log_of_short_events_comes_back(void **state)
{
    struct records_place place;
    uint8_t event[SHORTEST] = {0}, record[RECORD_DATA_LEN];
    uint32_t count = 0, number;
    const uint8_t *read;
    uint16_t len;
    size_t at = 0;

    (void)state;
    store_read_events(&flash, &place, &events);
    /* One more than fill all sectors, so that the newest has one record. */
    for (uint32_t n = 1; n <= 20 * RECORDS_IN_SECTOR + 1; n++) {
        event_part_emit(record, n, event, sizeof(event), 0);
        assert_true(store_write_event_part(&flash, &place, record));
    }
    store_read_events(&flash, &place, &events);
    while (event_records_next(&events, &at, &number, &read, &len)) {
        count++;
    }
    assert_true(count * SHORTEST >= 32768 - 512);
}

static void test_sectors_are_used_in_turn(void **state)
{
    const uint32_t sectors = FLASH_EVENTS_SIZE / FLASH_SECTOR_BYTES;
    struct records_place place;
    uint32_t n = 0;

    (void)state;
    store_read_events(&flash, &place, &events);
    while (erasures < sectors + 3) {
        assert_true(write_event(&place, ++n));
    }
    assert_int_equal(place.sequence, sectors + 3);
    expect_up_to(n);
}

/* The power fails after each byte of an event that begins a sector; of the
 * erasure, after some bytes. */
static void test_a_power_cut_loses_the_last_event_at_most(void **state)
{
    static uint8_t before[2 * FLASH_SECTOR_BYTES];
    uint8_t *sectors; /* the one in use, and the next */
    struct records_place place, again;
    uint32_t n = 0, last, count;
    bool is_whole;

    (void)state;
    store_read_events(&flash, &place, &events);
    while (n % 7 != 6 || place.used < RECORDS_IN_SECTOR - 5 ||
           place.used == RECORDS_IN_SECTOR) {
        assert_true(write_event(&place, ++n)); /* the next one is long */
    }
    sectors = part + (place.sequence - 1) * FLASH_SECTOR_BYTES;
    memcpy(before, sectors, sizeof(before));
    for (size_t cut = 0;; cut += cut > 400 && cut < 4300 ? 64 : 1) {
        memcpy(sectors, before, sizeof(before));
        again = place;
        bytes_left = cut;
        is_whole = write_event(&again, n + 1);
        bytes_left = NEVER;
        /* The last byte may have been there before it was written. */
        last = newest_event(&count);
        assert_true(last == n + 1 || (last == n && !is_whole));
        /* The log goes on after what the power cut has left. */
        store_read_events(&flash, &again, &events);
        assert_true(write_event(&again, last + 1));
        expect_up_to(last + 1);
        if (is_whole) {
            break;
        }
    }
}

/* Records that no firmware has written are ignored. */
static void test_records_that_do_not_fit_together_are_ignored(void **state)
{
    uint8_t event[LONGEST], record[RECORD_DATA_LEN];
    const uint8_t *read;
    uint32_t number;
    uint16_t len;
    size_t at = 0;

    (void)state;
    memset(&events, 0, sizeof(events));
    memset(record, 0, sizeof(record)); /* length 0 */
    event_records_add(&events, record);
    memset(record, 0xff, sizeof(record));
    event_records_add(&events, record);
    len = event_of(7, event);
    event_part_emit(record, 7, event, len, 1); /* no first part */
    event_records_add(&events, record);
    event_part_emit(record, 7, event, len, 0);
    event_records_add(&events, record);
    event_part_emit(record, 8, event, len, 1); /* of another event */
    event_records_add(&events, record);
    event_part_emit(record, 7, event, len, 1);
    event_records_add(&events, record);
    assert_false(event_records_next(&events, &at, &number, &read, &len));
}

TEST_FIXTURE(blank_part, NULL)
