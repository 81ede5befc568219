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

struct part {
    struct flash flash;
    size_t bytes_left; /* bytes written until the power fails */
    bool is_broken;
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
    }
    return true;
}

static int blank_part(void **state)
{
    (void)state;
    memset(part.data, 0xff, sizeof(part.data));
    part.bytes_left = NEVER;
    part.is_broken = false;
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

static void test_config_writes_go_to_the_other_copy(void **state)
{
    struct config config, back;

    (void)state;
    config_default(&config);
    for (uint16_t n = 1; n <= 5; n++) {
        config.port[0].mtu_bytes = (uint16_t)(2000 + n);
        assert_true(store_write_config(&part.flash, NULL, NULL, &config));
        assert_int_equal(config.sequence, n);
        assert_true(store_read_config(&part.flash, NULL, NULL, &back));
        assert_int_equal(back.port[0].mtu_bytes, 2000 + n);
    }
    assert_memory_equal(part.data + FLASH_CONFIG_A_ADDR, "ESSD-CFG", 8);
    assert_memory_equal(part.data + FLASH_CONFIG_B_ADDR, "ESSD-CFG", 8);
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

/*
 * The power fails after each possible byte of an update, of either copy.  Then
 * the whole old configuration is in force or, after the last byte, the new one;
 * and the next update works.
 */
static void test_config_is_old_or_new_whenever_power_fails(void **state)
{
    struct config old, new, back;
    const size_t whole = FLASH_SECTOR_BYTES + CONFIG_LEN;

    (void)state;
    make_configs(&old, &new);
    for (unsigned int copy = 0; copy < 2; copy++) {
        assert_true(store_write_config(&part.flash, NULL, NULL, &old));
        for (size_t cut = 0; cut <= whole; cut++) {
            static uint8_t before[PART_BYTES];
            uint32_t sequence = old.sequence;
            bool is_done;

            memcpy(before, part.data, sizeof(before));
            part.bytes_left = cut;
            is_done = store_write_config(&part.flash, NULL, NULL, &new);
            assert_int_equal(is_done, cut == whole);
            part.bytes_left = NEVER;
            assert_true(store_read_config(&part.flash, NULL, NULL, &back));
            assert_true(says_the_same(&back, is_done ? &new : &old));
            assert_int_equal(back.sequence, is_done ? sequence + 1 : sequence);
            assert_true(store_write_config(&part.flash, NULL, NULL, &new));
            assert_true(store_read_config(&part.flash, NULL, NULL, &back));
            assert_true(says_the_same(&back, &new));
            memcpy(part.data, before, sizeof(before));
        }
    }
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
