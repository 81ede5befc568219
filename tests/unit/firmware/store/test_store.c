/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The blocks in flash, on a flash that behaves like a real one: bits only
 * change to 0, an erasure sets the bits of a sector, and the power can fail in
 * the middle of any write.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "firmware/store/flash_layout.h"
#include "firmware/store/store.h"
#include "tests/test_fixture.h"

#include <string.h>

#define PART_BYTES 0x30000u
#define NEVER      SIZE_MAX
#define STUCK_BIT  0x04 /* which the first byte of a configuration has set */

struct part {
    struct flash flash;
    size_t bytes_left; /* bytes written until the power fails */
    bool is_broken;
    uint32_t stuck_addr; /* a bit of this byte stays 0; 0: of none */
    uint8_t data[PART_BYTES];
};

static struct part part; /* static, because tests run one after the other */

static bool spend_byte(void)
{
    if (part.bytes_left == 0 || part.is_broken) {
        return false;
    }
    part.bytes_left -= part.bytes_left != NEVER;
    return true;
}

void flash_read(const struct flash *flash, uint32_t addr, void *buf,
                size_t len_bytes)
{
    assert_ptr_equal(flash, &part.flash);
    assert_true(addr + len_bytes <= PART_BYTES);
    memcpy(buf, part.data + addr, len_bytes);
}

bool flash_erase_sector(const struct flash *flash, uint32_t addr)
{
    (void)flash;
    assert_int_equal(addr % FLASH_SECTOR_BYTES, 0);
    for (uint32_t i = 0; i < FLASH_SECTOR_BYTES; i++) {
        if (!spend_byte()) {
            return false;
        }
        part.data[addr + i] = 0xff;
    }
    return true;
}

bool flash_program(const struct flash *flash, uint32_t addr, const void *data,
                   size_t len_bytes)
{
    const uint8_t *from = data;

    (void)flash;
    for (size_t i = 0; i < len_bytes; i++) {
        if (!spend_byte()) {
            return false;
        }
        part.data[addr + i] &= from[i];
        if (addr + i == part.stuck_addr) {
            part.data[addr + i] &= (uint8_t)~STUCK_BIT;
        }
    }
    return true;
}

static int blank_part(void **state)
{
    (void)state;
    memset(part.data, 0xff, sizeof(part.data));
    part.bytes_left = NEVER;
    part.is_broken = false;
    part.stuck_addr = 0;
    return 0;
}

static uint32_t count_boot(void)
{
    uint32_t generation = 0;

    assert_true(store_count_boot(&part.flash, 1000, &generation));
    return generation;
}

static void test_first_boot_gets_the_given_number(void **state)
{
    (void)state;
    assert_int_equal(count_boot(), 1001);
    assert_int_equal(count_boot(), 1002);
}

static void test_the_boot_count_continues_after_a_full_sector(void **state)
{
    (void)state;
    for (uint32_t n = 1; n <= 2500; n++) {
        assert_int_equal(count_boot(), 1000 + n);
    }
}

/* The power fails after each possible byte of each boot near a full sector. */
static void test_no_generation_repeats_whenever_power_fails(void **state)
{
    uint32_t last = 0;

    (void)state;
    for (uint32_t n = 0; n < 1018; n++) {
        last = count_boot();
    }
    for (size_t cut = 0; cut < FLASH_SECTOR_BYTES + 40; cut += 1 + cut / 64) {
        static uint8_t before[PART_BYTES];
        uint32_t start = last;
        uint32_t seen;
        uint32_t generation;

        memcpy(before, part.data, sizeof(before));
        for (uint32_t boots = 0; boots < 6; boots++) {
            part.bytes_left = cut;
            seen = start;
            if (store_count_boot(&part.flash, 5, &generation)) {
                assert_true(generation > seen);
                start = generation;
            }
            part.bytes_left = NEVER;
            generation = count_boot();
            assert_true(generation > start);
            assert_true(generation <= start + 2);
            start = generation;
        }
        memcpy(part.data, before, sizeof(before));
    }
}

static void test_a_damaged_sector_does_not_lower_the_count(void **state)
{
    uint32_t last = 0;

    (void)state;
    for (uint32_t n = 0; n < 1500; n++) {
        last = count_boot();
    }
    part.data[FLASH_BOOT_COUNT_A_ADDR + 9] ^= 1; /* the older sector */
    assert_int_equal(count_boot(), last + 1);
}

/* Then the older sector is full, and its last number is not the last one. */
static void test_a_damaged_newer_sector_does_not_repeat_a_count(void **state)
{
    static uint8_t before[PART_BYTES];
    uint32_t last = 0;

    (void)state;
    for (uint32_t n = 0; n < 1500; n++) {
        last = count_boot();
    }
    memcpy(before, part.data, sizeof(before));
    for (uint32_t bit = 0; bit < 16 * 8; bit++) {
        memcpy(part.data, before, sizeof(before));
        part.data[FLASH_BOOT_COUNT_B_ADDR + bit / 8] ^= (uint8_t)BIT(bit % 8);
        assert_int_equal(count_boot(), last + 1);
        assert_int_equal(count_boot(), last + 2);
    }
}

static const uint32_t count_addr[] = {FLASH_BOOT_COUNT_A_ADDR,
                                      FLASH_BOOT_COUNT_B_ADDR};

/* Count boots until one sector is full, and some more in the other one. */
static uint32_t count_into(unsigned int sector)
{
    uint32_t last = 0;

    for (uint32_t n = 0; n < (sector == 0 ? 2100u : 1500u); n++) {
        last = count_boot();
    }
    return last;
}

/* The power fails after so many bytes of the next boots, once or twice. */
static void expect_no_repetition_when_cut(uint32_t last, size_t cut)
{
    static uint8_t before[PART_BYTES];

    memcpy(before, part.data, sizeof(before));
    for (size_t again = 0; again < 3; again++) {
        uint32_t counted = last, next, generation;

        part.bytes_left = cut;
        assert_false(store_count_boot(&part.flash, 5, &generation));
        part.bytes_left = cut * again / 2;
        if (store_count_boot(&part.flash, 5, &generation)) {
            counted = generation;
        }
        part.bytes_left = NEVER;
        next = count_boot();
        assert_true(counted >= last && next > counted && next <= counted + 2);
        assert_int_equal(count_boot(), next + 1);
        memcpy(part.data, before, sizeof(before));
    }
}

static void test_a_damaged_newer_sector_and_a_power_cut_repeat_no_count(
    void **state)
{
    /* Erase and begin the third sector and the damaged one, and use a word. */
    const size_t all = 2 * (FLASH_SECTOR_BYTES + 16) + 4;

    for (unsigned int newer = 0; newer < ARRAY_LEN(count_addr); newer++) {
        uint32_t last;

        blank_part(state);
        last = count_into(newer);
        part.data[count_addr[newer]] ^= 1; /* its header */
        for (size_t cut = 0; cut < all; cut += cut % 4096 < 24 ? 1 : 61) {
            expect_no_repetition_when_cut(last, cut);
        }
    }
}

static void test_a_broken_flash_is_reported(void **state)
{
    uint32_t generation = 0;

    (void)state;
    part.is_broken = true;
    assert_false(store_count_boot(&part.flash, 77, &generation));
    assert_int_equal(generation, 77);
}

static void test_config_is_the_default_when_there_is_none(void **state)
{
    struct config config;

    (void)state;
    assert_false(store_read_config(&part.flash, NULL, NULL, &config));
    assert_int_equal(config.port[0].mtu_bytes, 1500);
}

static bool write_config(struct config *config)
{
    return store_write_config(&part.flash, NULL, NULL, config) == STORE_SAVED;
}

static void test_config_writes_go_to_both_copies(void **state)
{
    struct config config, back;

    (void)state;
    config_default(&config);
    for (uint16_t n = 1; n <= 5; n++) {
        config.port[0].mtu_bytes = (uint16_t)(2000 + n);
        assert_true(write_config(&config));
        assert_int_equal(config.sequence, n);
        assert_true(store_read_config(&part.flash, NULL, NULL, &back));
        assert_int_equal(back.port[0].mtu_bytes, 2000 + n);
    }
    assert_memory_equal(part.data + FLASH_CONFIG_A_ADDR, "ESSD-CFG", 8);
    assert_memory_equal(part.data + FLASH_CONFIG_B_ADDR, "ESSD-CFG", 8);
}

static const uint32_t config_addr[] = {FLASH_CONFIG_A_ADDR,
                                       FLASH_CONFIG_B_ADDR};

static bool has_lost_config(void)
{
    return store_has_lost_config(&part.flash, NULL, NULL);
}

/* The power fails after each possible byte of the first configuration: what it
 * leaves is no lost one. */
static void test_an_unfinished_first_config_is_not_a_lost_one(void **state)
{
    const size_t copy = FLASH_SECTOR_BYTES + CONFIG_LEN;
    struct config config, back;

    config_default(&config);
    for (size_t cut = 0; cut <= copy; cut++) {
        blank_part(state);
        part.bytes_left = cut;
        (void)!write_config(&config);
        assert_false(has_lost_config());
        assert_int_equal(store_read_config(&part.flash, NULL, NULL, &back),
                         cut == copy);
    }
}

/* The power fails while a byte of the first magic is programmed: some of its
 * bits are cleared, and the bytes after it are as they were, or complete. */
static void test_a_first_magic_with_some_of_its_bits_is_not_a_lost_one(
    void **state)
{
    uint8_t *at = part.data + FLASH_CONFIG_A_ADDR;
    uint8_t magic[CONFIG_MAGIC_LEN];
    struct config config;

    config_default(&config);
    for (size_t i = 0; i < (size_t)CONFIG_MAGIC_LEN * 2 * 256; i++) {
        size_t byte = i / 512;
        uint8_t left = (uint8_t)(i % 256);

        blank_part(state);
        assert_true(write_config(&config));
        memcpy(magic, at, sizeof(magic));
        memset(part.data + FLASH_CONFIG_B_ADDR, 0xff, FLASH_SECTOR_BYTES);
        at[byte] |= left;
        if (i / 256 % 2 == 0) {
            memset(at + byte + 1, 0xff, sizeof(magic) - byte - 1);
        }
        if (memcmp(at, magic, sizeof(magic)) != 0) {
            assert_false(has_lost_config());
        }
    }
}

/* Whether a wrong bit in an only copy may be what an unfinished write has left:
 * it is in the magic, and is 1. */
static bool may_be_unfinished(size_t bit)
{
    const uint8_t *byte = &part.data[FLASH_CONFIG_A_ADDR + bit / 8];

    return bit < (size_t)CONFIG_MAGIC_LEN * 8 && (*byte & BIT(bit % 8)) != 0;
}

/* Every bit of copy A is damaged in turn beside a damaged or missing copy B. */
static void test_two_damaged_configs_are_a_lost_one(void **state)
{
    struct config config;

    config_default(&config);
    for (size_t bit = 0; bit < (size_t)CONFIG_LEN * 8; bit++) {
        blank_part(state);
        assert_true(write_config(&config));
        assert_false(has_lost_config());
        part.data[FLASH_CONFIG_A_ADDR + bit / 8] ^= (uint8_t)(1 << bit % 8);
        assert_false(has_lost_config());
        part.data[FLASH_CONFIG_B_ADDR + bit / 9] ^= 1;
        assert_true(has_lost_config());
        memset(part.data + FLASH_CONFIG_B_ADDR, 0xff, FLASH_SECTOR_BYTES);
        assert_int_equal(has_lost_config(), !may_be_unfinished(bit));
    }
}

/* Whatever the magics of both copies are. */
static void test_two_configs_without_their_magics_are_a_lost_one(void **state)
{
    struct config config;

    config_default(&config);
    for (size_t i = 0; i < 256 * CONFIG_MAGIC_LEN; i++) {
        blank_part(state);
        assert_true(write_config(&config));
        for (size_t n = 0; n < ARRAY_LEN(config_addr); n++) {
            uint8_t *magic = part.data + config_addr[n];

            memset(magic + i / 256, (int)(i % 256), CONFIG_MAGIC_LEN - i / 256);
            magic[CONFIG_MAGIC_LEN - 1] = 0xff;
        }
        assert_true(has_lost_config());
    }
}

/* Until the first configuration after a loss is complete, it counts as lost,
 * whenever the power fails. */
static void test_a_lost_config_stays_lost_until_one_is_written(void **state)
{
    const size_t copy = FLASH_SECTOR_BYTES + CONFIG_LEN;
    struct config config;

    config_default(&config);
    for (size_t i = 0; i < 2 * 3 * copy; i++) {
        size_t cut = i % copy, damage = i / copy % 3;

        blank_part(state);
        assert_true(write_config(&config));
        part.data[FLASH_CONFIG_A_ADDR + 40] ^= 1;
        part.data[FLASH_CONFIG_B_ADDR + 40] ^= 1;
        if (damage != 2) {
            memset(part.data + config_addr[damage], 0xff, FLASH_SECTOR_BYTES);
        }
        part.bytes_left = cut;
        assert_false(write_config(&config));
        assert_true(has_lost_config());
        part.bytes_left = NEVER;
        assert_true(write_config(&config));
        assert_false(has_lost_config());
    }
}

/* Set something in each part of the block. */
static void make_configs(struct config *old, struct config *new)
{
    config_default(old);
    *new = *old;
    new->port[0].mtu_bytes = 9000;
    new->port[1].fec = CONFIG_FEC_RS;
    memcpy(new->services.name, "another", sizeof("another"));
    new->network.extra[3].is_used = true;
    new->network.extra[3].prefix = 64;
    memset(new->network.extra[3].ip, 0xfd, 16);
    new->network.lag = CONFIG_LAG_LACP;
    new->network.pfc_priorities = 0;
}

static bool says_the_same(const struct config *a, const struct config *b)
{
    uint8_t one[CONFIG_BODY_LEN], other[CONFIG_BODY_LEN];

    config_body_emit(a, one);
    config_body_emit(b, other);
    return memcmp(one, other, sizeof(one)) == 0;
}

static void expect_config(const struct config *expected)
{
    struct config back;

    assert_true(store_read_config(&part.flash, NULL, NULL, &back));
    assert_true(says_the_same(&back, expected));
}

static enum store_repair repair_config(void)
{
    return store_repair_config(&part.flash, NULL, NULL);
}

/* Damage each of the copies in turn, by one bit. */
static void expect_config_with_one_damaged_copy(const struct config *expected,
                                                size_t at)
{
    for (size_t i = 0; i < ARRAY_LEN(config_addr); i++) {
        part.data[config_addr[i] + at] ^= 4;
        expect_config(expected);
        part.data[config_addr[i] + at] ^= 4;
    }
}

/*
 * The power fails after each possible byte of a change.  Then the whole old
 * configuration is in force or, after the first copy, the new one; the next
 * start writes the other copy again, so that damage changes nothing; and the
 * next change works.
 */
static void expect_old_or_new_config(const struct config *old,
                                     struct config *new)
{
    static uint8_t before[PART_BYTES];
    const size_t copy = FLASH_SECTOR_BYTES + CONFIG_LEN;

    memcpy(before, part.data, sizeof(before));
    for (size_t cut = 0; cut <= 2 * copy; cut++) {
        const struct config *kept = cut >= copy ? new : old;
        enum store_saved saved;

        memcpy(part.data, before, sizeof(before));
        part.bytes_left = cut;
        saved = store_write_config(&part.flash, NULL, NULL, new);
        assert_int_equal(saved, cut < copy       ? STORE_SAVE_FAILED
                                : cut < 2 * copy ? STORE_SAVED_ONCE
                                                 : STORE_SAVED);
        part.bytes_left = NEVER;
        expect_config(kept);
        assert_true(repair_config() != STORE_REPAIR_FAILED);
        expect_config_with_one_damaged_copy(kept, cut % CONFIG_LEN);
        assert_int_equal(repair_config(), STORE_REPAIR_NONE);
        assert_true(write_config(new));
        expect_config(new);
    }
}

static void test_config_is_old_or_new_whenever_power_fails(void **state)
{
    struct config old, new;

    (void)state;
    make_configs(&old, &new);
    assert_true(write_config(&old));
    expect_old_or_new_config(&old, &new);
}

/* Copy A or B is damaged while the drive runs, so that a change writes it
 * first, and then the only good one. */
static void test_a_damaged_config_is_written_before_the_good_one(void **state)
{
    struct config old, new;

    for (size_t i = 0; i < ARRAY_LEN(config_addr); i++) {
        blank_part(state);
        make_configs(&old, &new);
        assert_true(write_config(&old));
        part.data[config_addr[i] + 30] ^= 1;
        expect_old_or_new_config(&old, &new);
    }
}

/*
 * The copy that is written first takes a wrong bit, and the power fails after
 * each possible byte of the change: the old configuration stays in force.
 */
static void test_a_copy_with_wrong_bits_does_not_cost_the_other(void **state)
{
    static uint8_t before[PART_BYTES];
    struct config old, new;

    (void)state;
    make_configs(&old, &new);
    assert_true(write_config(&old));
    memcpy(before, part.data, sizeof(before));
    for (size_t cut = 1; cut <= 2 * (FLASH_SECTOR_BYTES + CONFIG_LEN); cut++) {
        memcpy(part.data, before, sizeof(before));
        part.stuck_addr = FLASH_CONFIG_B_ADDR;
        part.bytes_left = cut;
        assert_int_equal(store_write_config(&part.flash, NULL, NULL, &new),
                         STORE_SAVE_FAILED);
        part.bytes_left = NEVER;
        expect_config(&old);
        assert_int_equal(repair_config(), STORE_REPAIR_FAILED);
        expect_config(&old);
        part.stuck_addr = 0;
        assert_int_equal(repair_config(), STORE_REPAIR_DONE);
    }
}

static void test_a_second_copy_with_wrong_bits_is_reported(void **state)
{
    struct config old, new;

    (void)state;
    make_configs(&old, &new);
    assert_true(write_config(&old));
    part.stuck_addr = FLASH_CONFIG_A_ADDR;
    assert_int_equal(store_write_config(&part.flash, NULL, NULL, &new),
                     STORE_SAVED_ONCE);
    expect_config(&new);
}

/* The setting that a change has taken back may have let hosts in. */
static void test_a_flipped_bit_of_one_config_changes_nothing(void **state)
{
    static uint8_t before[PART_BYTES];
    struct config old, new;

    (void)state;
    make_configs(&old, &new);
    assert_true(write_config(&old));
    assert_true(write_config(&new));
    memcpy(before, part.data, sizeof(before));
    for (size_t i = 0; i < 2 * CONFIG_LEN * 8; i++) {
        part.data[config_addr[i % 2] + i / 16] ^= (uint8_t)BIT(i / 2 % 8);
        expect_config(&new);
        assert_int_equal(repair_config(), STORE_REPAIR_DONE);
        assert_memory_equal(part.data, before, sizeof(before));
        assert_int_equal(repair_config(), STORE_REPAIR_NONE);
    }
}

/* The power fails while a damaged copy is written again. */
static void test_a_repair_of_a_config_may_be_cut(void **state)
{
    static uint8_t before[PART_BYTES];
    struct config old, new;

    (void)state;
    make_configs(&old, &new);
    assert_true(write_config(&new));
    part.data[FLASH_CONFIG_B_ADDR + 30] ^= 1;
    memcpy(before, part.data, sizeof(before));
    for (size_t cut = 0; cut < FLASH_SECTOR_BYTES + CONFIG_LEN; cut++) {
        memcpy(part.data, before, sizeof(before));
        part.bytes_left = cut;
        assert_int_equal(repair_config(), STORE_REPAIR_FAILED);
        part.bytes_left = NEVER;
        expect_config(&new);
        assert_int_equal(repair_config(), STORE_REPAIR_DONE);
    }
}

/* Older firmware has changed one copy only, and a tool numbers both. */
static void test_a_kept_drive_gets_two_equal_configs(void **state)
{
    struct config old, new;

    (void)state;
    make_configs(&old, &new);
    for (uint32_t n = 0; n < 2; n++) {
        old.sequence = 7;
        new.sequence = 8;
        config_emit(&old, part.data + config_addr[n]);
        config_emit(&new, part.data + config_addr[1 - n]);
        assert_int_equal(repair_config(), STORE_REPAIR_DONE);
        expect_config_with_one_damaged_copy(&new, 40);
        new.sequence = 9;
        config_emit(&new, part.data + config_addr[n]);
        assert_int_equal(repair_config(), STORE_REPAIR_NONE);
    }
}

/* Older firmware runs for a trial, and does not know what newer has saved. */
static void test_a_config_of_newer_firmware_stays(void **state)
{
    static uint8_t before[PART_BYTES];
    struct config old, new;

    (void)state;
    make_configs(&old, &new);
    old.sequence = 7;
    new.sequence = 8;
    new.network.tls = (enum config_tls)7;
    config_emit(&old, part.data + FLASH_CONFIG_A_ADDR);
    config_emit(&new, part.data + FLASH_CONFIG_B_ADDR);
    memcpy(before, part.data, sizeof(before));
    expect_config(&old);
    assert_int_equal(repair_config(), STORE_REPAIR_NONE);
    assert_memory_equal(part.data, before, sizeof(before));
}

static void test_identity_is_read_from_either_copy(void **state)
{
    struct identity id = {.serial = "S", .model = "M", .subsystem_nqn = "N"};
    struct identity back;

    (void)state;
    assert_false(store_read_identity(&part.flash, &back));
    identity_emit(&id, part.data + FLASH_IDENTITY_COPY_ADDR);
    assert_true(store_read_identity(&part.flash, &back));
    identity_emit(&id, part.data + FLASH_IDENTITY_ADDR);
    part.data[FLASH_IDENTITY_COPY_ADDR] = 0;
    assert_true(store_read_identity(&part.flash, &back));
    assert_string_equal(back.serial, "S");
}

TEST_FIXTURE(blank_part, NULL)
