/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The list of hosts in flash: its bytes, power cuts at every byte of a change,
 * flipped bits, and what is left of secrets that were removed.
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
#include "lib/crc32.h"
#include "tests/test_fixture.h"

#include <string.h>

#define PART_BYTES (FLASH_HOSTS_B_ADDR + FLASH_HOSTS_SIZE)
#define NEVER      SIZE_MAX

static struct flash flash;
/* A sector is erased in steps: its header byte by byte, then its rest. */
enum { ERASE_STEP = 450, ENTRY_STEP = 48 };

static size_t bytes_left; /* bytes or steps until the power fails */
static uint8_t part[PART_BYTES];
static struct host_list list, found;

static unsigned int fails_at; /* number of the operation that fails; 0: none */

static bool starts_operation(void)
{
    return fails_at == 0 || --fails_at != 0;
}

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
    if (!starts_operation()) {
        return false;
    }
    for (uint32_t i = 0, len; i < FLASH_SECTOR_BYTES; i += len) {
        len = i < HOST_LIST_HEADER_LEN ? 1 : ERASE_STEP;
        if (!spend_byte()) {
            return false;
        }
        memset(part + addr + i, 0xff, MIN(len, FLASH_SECTOR_BYTES - i));
    }
    return true;
}

bool flash_program(const struct flash *to, uint32_t addr, const void *data,
                   size_t len_bytes)
{
    const uint8_t *from = data;

    (void)to;
    if (!starts_operation()) {
        return false;
    }
    for (size_t i = 0; i < len_bytes; i++) {
        /* Headers and seals are programmed byte by byte. */
        if ((len_bytes != HOST_ENTRY_LEN || i % ENTRY_STEP == 0) &&
            !spend_byte()) {
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
    fails_at = 0;
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
        assert_int_equal(host_store_write(&flash, &list), HOST_SAVED);
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
    assert_int_equal(host_store_write(&flash, &list), HOST_SAVED);
    assert_memory_equal(part + FLASH_HOSTS_A_ADDR, begin, sizeof(begin));
    assert_memory_equal(part + FLASH_HOSTS_A_ADDR + 32, list.entry[0].nqn,
                        sizeof(list.entry[0].nqn));
    assert_memory_equal(part + FLASH_HOSTS_A_ADDR + 32 + 240,
                        list.entry[0].host_key.bytes, 48);
    assert_memory_equal(part + FLASH_HOSTS_A_ADDR + 32 + 384 + 312,
                        list.entry[1].ctrl_key.bytes, 64);
}

/* What older firmware did: it wrote the copy that was not in force, and erased
 * no more than that needed. */
static void write_as_older_firmware(int copy, uint32_t sequence)
{
    uint32_t addr = copy == 0 ? FLASH_HOSTS_A_ADDR : FLASH_HOSTS_B_ADDR;
    struct host_list_header header = {
        .sequence = sequence,
        .count = list.count,
        .is_exclusive = list.is_exclusive,
    };
    uint32_t len = HOST_LIST_HEADER_LEN + list.count * (uint32_t)HOST_ENTRY_LEN;
    uint8_t buf[HOST_ENTRY_LEN];

    for (uint32_t at = 0; at < len; at += FLASH_SECTOR_BYTES) {
        assert_true(flash_erase_sector(&flash, addr + at));
    }
    for (uint16_t i = 0; i < list.count; i++) {
        host_entry_emit(&list.entry[i], buf);
        header.body_crc = crc32_update(header.body_crc, buf, sizeof(buf));
        assert_true(flash_program(
            &flash, addr + HOST_LIST_HEADER_LEN + i * (uint32_t)HOST_ENTRY_LEN,
            buf, sizeof(buf)));
    }
    host_list_header_emit(&header, buf);
    assert_true(flash_program(&flash, addr, buf, HOST_LIST_HEADER_LEN));
}

/* How often a key of make_list() is in the flash. */
static unsigned int count_secrets(uint8_t number, uint16_t entry)
{
    uint8_t key[48];
    unsigned int count = 0;

    memset(key, number + entry, sizeof(key));
    for (size_t i = FLASH_HOSTS_A_ADDR; i + sizeof(key) <= sizeof(part); i++) {
        if (part[i] == key[0] && part[i - 1] != key[0]) {
            count += memcmp(part + i, key, sizeof(key)) == 0;
        }
    }
    return count;
}

/* States of the flash before a change, all with list 2 or without a list. */
enum before {
    BEFORE_EMPTY,
    BEFORE_BOTH,
    BEFORE_DAMAGED_A,
    BEFORE_DAMAGED_B,
    BEFORE_DAMAGED_BOTH,
    BEFORE_OLDER_FIRMWARE,
    BEFORE_OLDER_DAMAGED, /* its newest copy is damaged */
    BEFORE_RETURN,        /* older firmware after this one: its seals stay */
    STATES_BEFORE,
};

static void prepare_flash(enum before before)
{
    memset(part, 0xff, sizeof(part));
    make_list(2, 4);
    if (before == BEFORE_OLDER_FIRMWARE || before == BEFORE_OLDER_DAMAGED) {
        make_list(3, 20);
        write_as_older_firmware(0, 6);
        make_list(2, 4);
        write_as_older_firmware(1, 7);
    } else if (before == BEFORE_RETURN) {
        make_list(3, 20);
        assert_int_equal(host_store_write(&flash, &list), HOST_SAVED);
        write_as_older_firmware(0, 2);
        make_list(2, 4);
        write_as_older_firmware(1, 3);
    } else if (before != BEFORE_EMPTY) {
        assert_int_equal(host_store_write(&flash, &list), HOST_SAVED);
    }
    if (before == BEFORE_DAMAGED_A || before == BEFORE_DAMAGED_BOTH) {
        part[FLASH_HOSTS_A_ADDR + 700] ^= 0x10;
    }
    if (before == BEFORE_DAMAGED_B || before == BEFORE_DAMAGED_BOTH ||
        before == BEFORE_OLDER_DAMAGED) {
        part[FLASH_HOSTS_B_ADDR + 12] ^= 0x10;
    }
}

static const enum host_store_state state_before[STATES_BEFORE] = {
    [BEFORE_EMPTY] = HOST_STORE_EMPTY,
    [BEFORE_BOTH] = HOST_STORE_INTACT,
    [BEFORE_DAMAGED_A] = HOST_STORE_INTACT,
    [BEFORE_DAMAGED_B] = HOST_STORE_INTACT,
    [BEFORE_DAMAGED_BOTH] = HOST_STORE_DAMAGED,
    [BEFORE_OLDER_FIRMWARE] = HOST_STORE_INTACT,
    [BEFORE_OLDER_DAMAGED] = HOST_STORE_DAMAGED,
    [BEFORE_RETURN] = HOST_STORE_INTACT,
};

/* @return whether the list in force is the new one; else it is as before */
static bool is_new_in_force(enum before before, const struct host_list *old,
                            const struct host_list *fresh)
{
    enum host_store_state state = host_store_read(&flash, &found);

    if (state == HOST_STORE_INTACT &&
        memcmp(&found, fresh, sizeof(found)) == 0) {
        return true;
    }
    assert_int_equal(state, state_before[before]);
    if (state == HOST_STORE_INTACT) {
        assert_memory_equal(&found, old, sizeof(found));
    } else {
        assert_int_equal(found.count, 0);
    }
    return false;
}

/*
 * Cut the power after each possible number of bytes that an action erases and
 * programs.  Always the old or the new list is in force, or none as before, and
 * the start after the cut leaves no way back.
 */
static void sweep_cuts(enum before before, bool is_change)
{
    static uint8_t image[PART_BYTES];
    static struct host_list old, fresh;
    bool is_done = false;

    prepare_flash(before);
    old = list;
    make_list(3, 9);
    fresh = is_change ? list : old;
    memcpy(image, part, sizeof(part));
    for (size_t cut = 0; !is_done; cut++) {
        bool was_new;

        memcpy(part + FLASH_HOSTS_A_ADDR, image + FLASH_HOSTS_A_ADDR,
               PART_BYTES - FLASH_HOSTS_A_ADDR);
        bytes_left = cut;
        is_done = is_change
                      ? host_store_write(&flash, &fresh) == HOST_SAVED
                      : host_store_repair(&flash, &old) != HOST_REPAIR_FAILED;
        is_done &= bytes_left != 0;
        bytes_left = NEVER;
        was_new = is_new_in_force(before, &old, &fresh);
        assert_true(was_new || !is_done || !is_change);
        if (cut % 61 != 0) {
            continue;
        }
        if (host_store_read(&flash, &found) == HOST_STORE_INTACT) {
            assert_int_not_equal(host_store_repair(&flash, &found),
                                 HOST_REPAIR_FAILED);
            assert_int_equal(host_store_repair(&flash, &found),
                             HOST_REPAIR_NONE);
            assert_int_equal(is_new_in_force(before, &old, &fresh), was_new);
            assert_int_equal(count_secrets(4, 0), was_new && is_change ? 0 : 2);
            assert_int_equal(count_secrets(20, 0), 0);
        }
        assert_int_equal(host_store_write(&flash, &fresh), HOST_SAVED);
        assert_true(is_new_in_force(before, &old, &fresh));
    }
}

static void test_a_power_cut_leaves_the_old_or_the_new_list(void **state)
{
    (void)state;
    for (unsigned int before = 0; before < STATES_BEFORE; before++) {
        sweep_cuts((enum before)before, true);
    }
}

static void test_a_power_cut_of_a_repair_leaves_the_list(void **state)
{
    static const enum before rows[] = {BEFORE_DAMAGED_A, BEFORE_DAMAGED_B,
                                       BEFORE_OLDER_FIRMWARE, BEFORE_RETURN};

    (void)state;
    for (size_t row = 0; row < ARRAY_LEN(rows); row++) {
        sweep_cuts(rows[row], false);
    }
}

/* Each operation of the flash fails in turn, and the ones after it do not. */
static void test_a_failed_operation_is_reported(void **state)
{
    static struct host_list old, fresh;
    unsigned int once = 0, never = 0;

    (void)state;
    for (unsigned int op = 1;; op++) {
        enum host_save saved;
        bool is_new;

        prepare_flash(BEFORE_BOTH);
        old = list;
        make_list(3, 9);
        fresh = list;
        fails_at = op;
        saved = host_store_write(&flash, &fresh);
        if (fails_at != 0) {
            fails_at = 0;
            assert_int_equal(saved, HOST_SAVED);
            break;
        }
        is_new = is_new_in_force(BEFORE_BOTH, &old, &fresh);
        assert_int_equal(is_new, saved == HOST_SAVED_ONCE);
        once += saved == HOST_SAVED_ONCE;
        never += saved == HOST_SAVE_FAILED;
    }
    assert_true(once > 5 && never > 5);
}

/* Else a drive that everybody may use would let nobody in. */
static void test_a_power_cut_during_the_first_write_leaves_no_list(void **state)
{
    const size_t before =
        HOST_ENTRY_LEN / ENTRY_STEP; /* an erased copy is not erased */

    (void)state;
    for (uint8_t number = 1; number < 240; number += 16) {
        for (size_t cut = before; cut < before + HOST_LIST_HEADER_LEN; cut++) {
            memset(part, 0xff, sizeof(part));
            make_list(1, number);
            bytes_left = cut;
            assert_int_equal(host_store_write(&flash, &list), HOST_SAVE_FAILED);
            bytes_left = NEVER;
            assert_int_equal(host_store_read(&flash, &found), HOST_STORE_EMPTY);
        }
        assert_int_equal(count_secrets(number, 0), 1);
        assert_int_equal(host_store_repair(&flash, &found),
                         HOST_REPAIR_FINISHED);
        assert_int_equal(count_secrets(number, 0), 0);
        assert_int_equal(host_store_repair(&flash, &found), HOST_REPAIR_NONE);
    }
}

/* The bits of a header, of a seal, and many of the entries are flipped. */
static void test_a_flipped_bit_of_one_copy_changes_nothing(void **state)
{
    static const uint32_t copies[] = {FLASH_HOSTS_A_ADDR, FLASH_HOSTS_B_ADDR};
    const uint32_t len = HOST_LIST_HEADER_LEN + 2 * (uint32_t)HOST_ENTRY_LEN;

    (void)state;
    make_list(3, 5); /* an exclusive list with one host more */
    assert_int_equal(host_store_write(&flash, &list), HOST_SAVED);
    make_list(2, 7);
    assert_int_equal(host_store_write(&flash, &list), HOST_SAVED);
    for (size_t i = 0; i < ARRAY_LEN(copies); i++) {
        for (uint32_t bit = 0; bit<8 * (len + HOST_LIST_SEAL_LEN);
                                       bit += bit / 8> HOST_LIST_HEADER_LEN &&
                                       bit / 8 < len
                                   ? 41
                                   : 1) {
            uint32_t at = bit / 8 < len
                              ? bit / 8
                              : FLASH_HOSTS_SIZE - 1 - (bit / 8 - len);

            part[copies[i] + at] ^= (uint8_t)BIT(bit % 8);
            assert_list_in_force();
            assert_int_equal(host_store_repair(&flash, &found),
                             bit / 8 < len ? HOST_REPAIR_DAMAGE
                                           : HOST_REPAIR_FINISHED);
            assert_int_equal(host_store_repair(&flash, &found),
                             HOST_REPAIR_NONE);
            assert_list_in_force();
        }
    }
}

/* So a flipped bit cannot turn a complete header into one that never counted.
 */
static void test_no_flipped_bit_makes_a_header_unfinished(void **state)
{
    uint8_t buf[HOST_LIST_HEADER_LEN];

    (void)state;
    for (uint32_t sequence = 1; sequence < 5000; sequence++) {
        struct host_list_header header = {.sequence = sequence};

        host_list_header_emit(&header, buf);
        for (unsigned int bit = 0; bit < 8; bit++) {
            buf[HOST_LIST_HEADER_LEN - 1] ^= (uint8_t)BIT(bit);
            assert_true(host_list_header_is_complete(buf));
            buf[HOST_LIST_HEADER_LEN - 1] ^= (uint8_t)BIT(bit);
        }
    }
}

static void test_two_damaged_copies_let_nobody_in(void **state)
{
    (void)state;
    prepare_flash(BEFORE_DAMAGED_BOTH);
    assert_int_equal(host_store_read(&flash, &found), HOST_STORE_DAMAGED);
    assert_int_equal(found.count, 0);
    assert_int_equal(host_store_repair(&flash, &found), HOST_REPAIR_NONE);
    assert_int_equal(host_store_read(&flash, &found), HOST_STORE_DAMAGED);
}

/* The intact copy may be older than the damaged one: a host that it has may
 * have been removed. */
static void test_an_older_copy_of_older_firmware_does_not_come_back(
    void **state)
{
    (void)state;
    prepare_flash(BEFORE_OLDER_DAMAGED);
    assert_int_equal(host_store_read(&flash, &found), HOST_STORE_DAMAGED);
    assert_int_equal(found.count, 0);
    prepare_flash(BEFORE_OLDER_FIRMWARE);
    part[FLASH_HOSTS_A_ADDR + 700] ^= 0x10; /* the older one */
    assert_int_equal(host_store_read(&flash, &found), HOST_STORE_DAMAGED);
    prepare_flash(BEFORE_OLDER_FIRMWARE);
    assert_list_in_force();
    assert_int_equal(host_store_repair(&flash, &list), HOST_REPAIR_FINISHED);
    part[FLASH_HOSTS_A_ADDR + 700] ^= 0x10;
    assert_list_in_force();
}

static void test_removed_secrets_do_not_stay_in_flash(void **state)
{
    (void)state;
    for (uint8_t number = 10; number < 20; number++) {
        make_list((uint16_t)(70 - 3 * number), (uint8_t)(100 + number));
        assert_int_equal(host_store_write(&flash, &list), HOST_SAVED);
    }
    for (unsigned int key = 110; key < 110 + 64; key++) {
        unsigned int kept = key - 119 < list.count ? 2 : 0;

        if (key - 119 < list.count && (key - 119) % 2 == 0) {
            assert_int_equal(count_secrets((uint8_t)key, 0), kept);
        } else if (kept == 0) {
            assert_int_equal(count_secrets((uint8_t)key, 0), 0);
        }
    }
    /* Kept drives have those of older firmware, in both copies. */
    memset(part, 0xff, sizeof(part));
    for (uint32_t sequence = 1; sequence <= 4; sequence++) {
        make_list((uint16_t)(60 - 15 * sequence), (uint8_t)(60 * sequence));
        write_as_older_firmware(sequence % 2 == 0, sequence);
    }
    make_list(1, 2);
    write_as_older_firmware(0, 5);
    assert_true(count_secrets(180, 14) != 0 && count_secrets(120, 29) != 0);
    assert_list_in_force();
    assert_int_equal(host_store_repair(&flash, &list), HOST_REPAIR_FINISHED);
    assert_list_in_force();
    for (unsigned int key = 1; key < 255; key++) {
        assert_int_equal(count_secrets((uint8_t)key, 0), key == 2 ? 2 : 0);
    }
}

/* Every changed byte of the header, and every byte of an entry whose CRC is
 * right, is judged without a crash. */
/* Keys of TLS make entries longer; lists without one stay readable for older
 * firmware. */
static void test_keys_of_tls_are_kept_and_leave_the_flash(void **state)
{
    static const uint8_t key[32] = {0xc3, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
    unsigned int found_keys = 0;

    (void)state;
    make_list(HOSTS_MAX, 1);
    list.entry[HOSTS_MAX - 1].tls_key.len = sizeof(key);
    list.entry[HOSTS_MAX - 1].tls_key.hash = AUTH_SHA256;
    memcpy(list.entry[HOSTS_MAX - 1].tls_key.bytes, key, sizeof(key));
    assert_int_equal(host_store_write(&flash, &list), HOST_SAVED);
    assert_list_in_force();
    assert_int_equal(part[FLASH_HOSTS_A_ADDR + 8], 2);
    assert_int_equal(host_store_repair(&flash, &list), HOST_REPAIR_NONE);
    memset(&list.entry[HOSTS_MAX - 1].tls_key, 0, sizeof(struct auth_key));
    assert_int_equal(host_store_write(&flash, &list), HOST_SAVED);
    assert_list_in_force();
    assert_int_equal(part[FLASH_HOSTS_A_ADDR + 8], 1);
    for (size_t i = FLASH_HOSTS_A_ADDR; i + sizeof(key) < PART_BYTES; i++) {
        found_keys += memcmp(part + i, key, sizeof(key)) == 0;
    }
    assert_int_equal(found_keys, 0);
}

/* How often the key of TLS of put_tls_key() is in the flash. */
static unsigned int count_tls_keys(uint8_t number)
{
    uint8_t key[48];
    unsigned int count = 0;

    memset(key, number, sizeof(key));
    for (size_t i = FLASH_HOSTS_A_ADDR; i + sizeof(key) <= PART_BYTES; i++) {
        count += memcmp(part + i, key, sizeof(key)) == 0;
    }
    return count;
}

/* The last entry gets a key. */
static void put_tls_key(uint8_t number)
{
    struct auth_key *key = &list.entry[list.count - 1].tls_key;

    key->len = 48;
    key->hash = AUTH_SHA384;
    memset(key->bytes, number, 48);
}

/* Cut the power after each possible number of bytes while a key of TLS is
 * replaced by another one or removed: the next start leaves the old key in both
 * copies, or in none. */
static void sweep_tls_key(bool is_replaced)
{
    static uint8_t image[PART_BYTES];
    static struct host_list old, fresh;
    unsigned int olds = 0, news = 0;
    bool is_done = false;

    memset(part, 0xff, sizeof(part));
    make_list(3, 4);
    put_tls_key(0xa5);
    old = list;
    assert_int_equal(host_store_write(&flash, &old), HOST_SAVED);
    assert_int_equal(count_tls_keys(0xa5), 2);
    make_list(3, 4);
    if (is_replaced) {
        put_tls_key(0x5a);
    }
    fresh = list;
    memcpy(image, part, sizeof(part));
    for (size_t cut = 0; !is_done; cut++) {
        bool is_new;

        memcpy(part, image, sizeof(part));
        bytes_left = cut;
        is_done =
            host_store_write(&flash, &fresh) == HOST_SAVED && bytes_left != 0;
        bytes_left = NEVER;
        assert_int_equal(host_store_read(&flash, &found), HOST_STORE_INTACT);
        is_new = memcmp(&found, &fresh, sizeof(found)) == 0;
        assert_true(is_new || memcmp(&found, &old, sizeof(found)) == 0);
        assert_int_not_equal(host_store_repair(&flash, &found),
                             HOST_REPAIR_FAILED);
        assert_int_equal(count_tls_keys(0xa5), is_new ? 0 : 2);
        assert_int_equal(count_tls_keys(0x5a), is_new && is_replaced ? 2 : 0);
        *(is_new ? &news : &olds) += 1;
    }
    assert_true(olds > 100 && news > 100);
}

static void test_a_power_cut_leaves_no_copy_of_a_removed_key_of_tls(
    void **state)
{
    (void)state;
    sweep_tls_key(false);
    sweep_tls_key(true);
}

static void test_impossible_values_are_not_read(void **state)
{
    uint8_t buf[HOST_ENTRY_LEN], header[HOST_LIST_HEADER_LEN];
    struct host_list_header parsed;
    struct host_entry entry;

    (void)state;
    make_list(1, 9);
    assert_int_equal(host_store_write(&flash, &list), HOST_SAVED);
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
