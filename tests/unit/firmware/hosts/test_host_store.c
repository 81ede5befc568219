/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The list of hosts in flash: its bytes, and power cuts at every byte of a
 * write.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <stdio.h>
#include <cmocka.h>

#include "firmware/hosts/host_store.h"
#include "firmware/store/flash_layout.h"
#include "lib/bytes.h"
#include "tests/test_fixture.h"

#include <string.h>

#define PART_BYTES (FLASH_HOSTS_B_ADDR + FLASH_HOSTS_SIZE)
#define NEVER      SIZE_MAX

static struct flash flash;
static size_t bytes_left; /* bytes written until the power fails */
static uint8_t part[PART_BYTES];
static struct host_list list, found;

static bool spend_byte(void)
{
    if (bytes_left == 0) {
        return false;
    }
    bytes_left -= bytes_left != NEVER;
    return true;
}

void flash_read(const struct flash *from, uint32_t addr, void *buf,
                size_t len_bytes)
{
    assert_ptr_equal(from, &flash);
    assert_true(addr + len_bytes <= PART_BYTES);
    memcpy(buf, part + addr, len_bytes);
}

bool flash_erase_sector(const struct flash *to, uint32_t addr)
{
    (void)to;
    assert_int_equal(addr % FLASH_SECTOR_BYTES, 0);
    assert_true(addr >= FLASH_HOSTS_A_ADDR && addr < PART_BYTES);
    for (uint32_t i = 0; i < FLASH_SECTOR_BYTES; i++) {
        if (!spend_byte()) {
            return false;
        }
        part[addr + i] = 0xff;
    }
    return true;
}

bool flash_program(const struct flash *to, uint32_t addr, const void *data,
                   size_t len_bytes)
{
    const uint8_t *from = data;

    (void)to;
    for (size_t i = 0; i < len_bytes; i++) {
        if (!spend_byte()) {
            return false;
        }
        part[addr + i] &= from[i];
    }
    return true;
}

static int blank_part(void **state)
{
    (void)state;
    memset(part, 0xff, sizeof(part));
    memset(&list, 0, sizeof(list));
    bytes_left = NEVER;
    return 0;
}

TEST_FIXTURE(blank_part, NULL)

/* A list whose content follows from a number. */
static void make_list(uint16_t count, uint8_t number)
{
    memset(&list, 0, sizeof(list));
    list.count = count;
    list.is_exclusive = number & 1;
    for (uint16_t i = 0; i < count; i++) {
        struct host_entry *entry = &list.entry[i];

        (void)snprintf(entry->nqn, sizeof(entry->nqn),
                       "nqn.2014-08.org.example:host-%u-%u", number, i);
        entry->least_hash = (uint8_t)(AUTH_SHA256 + i % 3);
        entry->least_dh = (uint8_t)(i % AUTH_DHS);
        entry->host_key.len = 48;
        entry->host_key.hash = AUTH_SHA384;
        memset(entry->host_key.bytes, number + i, 48);
        entry->ctrl_key.len = i % 2 == 0 ? 0 : 64;
        memset(entry->ctrl_key.bytes, number + i, entry->ctrl_key.len);
    }
}

static void assert_list_in_force(void)
{
    assert_int_equal(host_store_read(&flash, &found), HOST_STORE_INTACT);
    assert_memory_equal(&found, &list, sizeof(list));
}

static void test_a_new_drive_has_no_hosts(void **state)
{
    (void)state;
    assert_int_equal(host_store_read(&flash, &found), HOST_STORE_EMPTY);
    assert_int_equal(found.count, 0);
    assert_false(found.is_exclusive);
}

static void test_lists_of_all_lengths_are_read_as_they_were_written(
    void **state)
{
    (void)state;
    for (uint16_t count = 0; count <= HOSTS_MAX; count += 16) {
        make_list(count, (uint8_t)(count + 3));
        assert_true(host_store_write(&flash, &list));
        assert_list_in_force();
    }
}

static void test_the_header_has_its_bytes(void **state)
{
    static const uint8_t begin[20] = {'E', 'S', 'S', 'D', '-', 'H', 'S',
                                      'T', 1,   0,   2,   0,   1,   0,
                                      0,   0,   1,   0,   0,   0};

    (void)state;
    make_list(2, 1);
    assert_true(host_store_write(&flash, &list));
    assert_memory_equal(part + FLASH_HOSTS_A_ADDR, begin, sizeof(begin));
    assert_memory_equal(part + FLASH_HOSTS_A_ADDR + 32, list.entry[0].nqn,
                        sizeof(list.entry[0].nqn));
    assert_memory_equal(part + FLASH_HOSTS_A_ADDR + 32 + 240,
                        list.entry[0].host_key.bytes, 48);
    assert_memory_equal(part + FLASH_HOSTS_A_ADDR + 32 + 384 + 312,
                        list.entry[1].ctrl_key.bytes, 64);
}

/* After each possible number of written bytes, the old or the new list is in
 * force, and the list can be written again. */
static void test_a_power_cut_leaves_the_old_or_the_new_list(void **state)
{
    static uint8_t before[PART_BYTES];
    struct host_list old, fresh;
    bool was_new = false;

    (void)state;
    make_list(3, 2);
    assert_true(host_store_write(&flash, &list));
    make_list(12, 7); /* a sector and a half */
    assert_true(host_store_write(&flash, &list));
    old = list;
    make_list(11, 8);
    fresh = list;
    memcpy(before, part, sizeof(part));
    for (size_t cut = 0; !was_new; cut++) {
        memcpy(part, before, sizeof(part));
        bytes_left = cut;
        was_new = host_store_write(&flash, &fresh);
        bytes_left = NEVER;
        list = was_new ? fresh : old;
        if (!was_new && host_store_read(&flash, &found) == HOST_STORE_INTACT &&
            memcmp(&found, &fresh, sizeof(fresh)) == 0) {
            list = fresh; /* only bits that were set already are missing */
        }
        assert_list_in_force();
        if (cut % 97 == 0) {
            list = fresh;
            assert_true(host_store_write(&flash, &list));
            assert_list_in_force();
        }
    }
}

/* Else a drive that everybody may use would let nobody in. */
static void test_a_power_cut_during_the_first_write_leaves_no_list(void **state)
{
    const size_t before = FLASH_SECTOR_BYTES + HOST_ENTRY_LEN;

    (void)state;
    for (uint8_t number = 0; number < 255; number++) {
        for (size_t cut = before; cut < before + HOST_LIST_HEADER_LEN; cut++) {
            memset(part, 0xff, sizeof(part));
            make_list(1, number);
            bytes_left = cut;
            assert_false(host_store_write(&flash, &list));
            bytes_left = NEVER;
            assert_int_equal(host_store_read(&flash, &found), HOST_STORE_EMPTY);
        }
        assert_true(host_store_write(&flash, &list));
        assert_list_in_force();
        part[FLASH_HOSTS_A_ADDR + number % 31] ^= 1;
        assert_int_equal(host_store_read(&flash, &found), HOST_STORE_DAMAGED);
    }
}

static void test_a_damaged_copy_is_not_used(void **state)
{
    struct host_list old;

    (void)state;
    make_list(2, 5);
    assert_true(host_store_write(&flash, &list)); /* copy A */
    old = list;
    make_list(3, 6);
    assert_true(host_store_write(&flash, &list)); /* copy B */
    part[FLASH_HOSTS_B_ADDR + 700] ^= 0x10;
    list = old;
    assert_list_in_force();
    part[FLASH_HOSTS_A_ADDR + 3] ^= 1;
    assert_int_equal(host_store_read(&flash, &found), HOST_STORE_DAMAGED);
    assert_int_equal(found.count, 0);
}

/* Every changed byte of the header, and every byte of an entry whose CRC is
 * right, is judged without a crash. */
static void test_impossible_values_are_not_read(void **state)
{
    uint8_t buf[HOST_ENTRY_LEN], header[HOST_LIST_HEADER_LEN];
    struct host_list_header parsed;
    struct host_entry entry;

    (void)state;
    make_list(1, 9);
    assert_true(host_store_write(&flash, &list));
    memcpy(header, part + FLASH_HOSTS_A_ADDR, sizeof(header));
    for (size_t i = 0; i < sizeof(header); i++) {
        header[i] ^= 0x40;
        assert_false(host_list_header_parse(&parsed, header));
        header[i] ^= 0x40;
    }
    assert_true(host_list_header_parse(&parsed, header));
    host_entry_emit(&list.entry[0], buf);
    assert_true(host_entry_parse(&entry, buf));
    buf[0] = 'm'; /* the name does not begin with "nqn." */
    assert_false(host_entry_parse(&entry, buf));
    buf[0] = 'n';
    buf[224] = 0; /* no hash function */
    assert_false(host_entry_parse(&entry, buf));
    buf[224] = 1;
    buf[225] = AUTH_DHS;
    assert_false(host_entry_parse(&entry, buf));
    buf[225] = 0;
    buf[232] = 65; /* a key that is too long */
    assert_false(host_entry_parse(&entry, buf));
    buf[232] = 33;
    assert_false(host_entry_parse(&entry, buf));
    memset(buf, 'a', 224); /* a name without an end */
    buf[232] = 32;
    assert_false(host_entry_parse(&entry, buf));
}
