/* SPDX-License-Identifier: BSD-2-Clause */
/* Intact configurations in flash that must not be used. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "firmware/settings/config_flash.h"
#include "firmware/settings/settings.h"
#include "firmware/hal/time.h"
#include "firmware/store/flash_layout.h"
#include "tests/test_fixture.h"

enum { PART_BYTES = FLASH_CONFIG_B_ADDR + FLASH_SECTOR_BYTES };

static struct flash flash;
static uint8_t part[PART_BYTES];
static struct log board_log;
static bool is_lost; /* what boot_from_flash() was told */

void flash_read(const struct flash *of, uint32_t addr, void *buf,
                size_t len_bytes)
{
    assert_ptr_equal(of, &flash);
    assert_true(addr + len_bytes <= PART_BYTES);
    memcpy(buf, part + addr, len_bytes);
}

bool flash_erase_sector(const struct flash *of, uint32_t addr)
{
    assert_ptr_equal(of, &flash);
    memset(part + addr, 0xff, FLASH_SECTOR_BYTES);
    return true;
}

bool flash_program(const struct flash *of, uint32_t addr, const void *data,
                   size_t len_bytes)
{
    assert_ptr_equal(of, &flash);
    assert_true(addr + len_bytes <= PART_BYTES);
    memcpy(part + addr, data, len_bytes);
    return true;
}

uint64_t hal_now_us(void)
{
    return 0;
}

static int blank_part(void **state)
{
    (void)state;
    memset(part, 0xff, sizeof(part));
    return 0;
}

/*
 * Read the configuration and count the lines of the log.
 * @return the log
 */
static const char *boot_from_flash(struct config *config, unsigned int *lines)
{
    memset(&board_log, 0, sizeof(board_log));
    /* Without a sink: the test reads the ring. */
    log_init(&board_log, (struct log_sink){0});
    memset(config, 0xa5, sizeof(*config));
    is_lost = !config_flash_read(&flash, &board_log, config);
    *lines = 0;
    for (uint32_t i = 0; i < board_log.head; i++) {
        *lines += board_log.ring[i] == '\n';
    }
    return board_log.ring;
}

static void put_config(uint32_t addr, uint32_t sequence,
                       const struct config *config)
{
    struct config copy = *config;

    copy.sequence = sequence;
    config_emit(&copy, part + addr);
}

static void make_good_config(struct config *config)
{
    config_default(config);
    config->port[1].mtu_bytes = 4242;
}

/* Set an IPv4-mapped address with 64 bits of prefix in place of an IPv6 one. */
static void set_mapped_ipv4(struct config *config)
{
    config->port[0].has_ipv6 = true;
    config->port[0].ipv6_prefix = 64;
    memset(config->port[0].ipv6 + 10, 0xff, 2);
    config->port[0].ipv6[12] = 10;
}

static void gateway_elsewhere(struct config *config)
{
    config->port[1].has_ipv4 = true;
    config->port[1].ipv4_prefix = 24;
    memcpy(config->port[1].ipv4, (uint8_t[]){10, 0, 1, 10}, 4);
    memcpy(config->port[1].ipv4_gateway, (uint8_t[]){10, 0, 2, 1}, 4);
}

static void no_prefix(struct config *config)
{
    config->port[0].has_ipv4 = true;
    config->port[0].ipv4[0] = 10;
    config->port[0].ipv4[3] = 10;
}

static void rs_at_10g(struct config *config)
{
    for (unsigned int i = 0; i < CONFIG_PORTS; i++) {
        config->port[i].speed_gbps = 10;
    }
    config->port[1].fec = CONFIG_FEC_RS;
}

static const struct row {
    void (*spoil)(struct config *config);
    const char *said;
} rows[] = {
    {set_mapped_ipv4,
     "configuration 7 in flash is not used: port.0.ipv6: 10.0.0.0 is "
     "an IPv4 address"},
    {gateway_elsewhere, "configuration 7 in flash is not used: "
                        "port.1.ipv4-gateway: 10.0.2.1 is outside the "
                        "port's network"},
    {no_prefix, "configuration 7 in flash is not used: port.0.ipv4: "
                "10.0.0.10/0 cannot be the address of a host"},
    {rs_at_10g, "configuration 7 in flash is not used: port.1.fec: rs needs "
                "25 Gb/s, but port.1.speed is 10"},
};

static void test_the_other_copy_is_used_instead(void **state)
{
    static const uint32_t addr[] = {FLASH_CONFIG_A_ADDR, FLASH_CONFIG_B_ADDR};
    struct config fine, bad, read;
    unsigned int lines;

    (void)state;
    make_good_config(&fine);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        for (unsigned int at = 0; at < 2; at++) {
            const char *said;

            bad = fine;
            rows[i].spoil(&bad);
            put_config(addr[at], 7, &bad);
            put_config(addr[1 - at], 6, &fine);
            said = boot_from_flash(&read, &lines);
            assert_non_null(strstr(said, rows[i].said));
            assert_int_equal(lines, 1);
            assert_int_equal(read.sequence, 6);
            assert_int_equal(read.port[1].mtu_bytes, 4242);
        }
    }
}

static void test_the_defaults_are_used_when_there_is_no_good_copy(void **state)
{
    struct config defaults, bad, read;
    uint8_t a[CONFIG_BODY_LEN], b[CONFIG_BODY_LEN];
    unsigned int lines;

    (void)state;
    config_default(&defaults);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const char *said;

        make_good_config(&bad);
        rows[i].spoil(&bad);
        memset(part, 0xff, sizeof(part));
        put_config(FLASH_CONFIG_B_ADDR, 7, &bad);
        said = boot_from_flash(&read, &lines);
        assert_non_null(strstr(said, rows[i].said));
        assert_non_null(strstr(said, "no configuration in flash is usable"));
        assert_non_null(strstr(said, "no host may connect until one is saved"));
        assert_true(is_lost);
        assert_int_equal(lines, 3);
        config_body_emit(&defaults, a);
        config_body_emit(&read, b);
        assert_memory_equal(a, b, sizeof(a));
    }
}

/* Only an intact copy that this firmware refuses may be known to another. */
static void test_a_damaged_configuration_is_not_an_unknown_one(void **state)
{
    struct config fine, bad, read;
    unsigned int lines;

    (void)state;
    assert_false(config_flash_is_unknown(&flash));
    make_good_config(&fine);
    bad = fine;
    rows[0].spoil(&bad);
    put_config(FLASH_CONFIG_A_ADDR, 6, &fine);
    put_config(FLASH_CONFIG_B_ADDR, 7, &bad);
    assert_false(config_flash_is_unknown(&flash));
    part[FLASH_CONFIG_A_ADDR + 40] ^= 1;
    assert_true(config_flash_is_unknown(&flash));
    boot_from_flash(&read, &lines);
    assert_true(is_lost);
    part[FLASH_CONFIG_B_ADDR + 40] ^= 1;
    assert_false(config_flash_is_unknown(&flash));
    boot_from_flash(&read, &lines);
    assert_true(is_lost);
}

static void test_a_configuration_that_was_never_written_is_not_lost(
    void **state)
{
    struct config read;
    unsigned int lines;

    (void)state;
    boot_from_flash(&read, &lines);
    assert_int_equal(lines, 1);
    assert_false(is_lost);
}

static void test_a_damaged_configuration_lets_no_host_in_until_one_is_saved(
    void **state)
{
    struct config fine, read;
    unsigned int lines;

    (void)state;
    make_good_config(&fine);
    assert_true(config_flash_write(&flash, &board_log, &fine));
    part[FLASH_CONFIG_A_ADDR + 50] ^= 1;
    boot_from_flash(&read, &lines);
    assert_false(is_lost);
    part[FLASH_CONFIG_B_ADDR + 60] ^= 1;
    boot_from_flash(&read, &lines);
    assert_true(is_lost);
    assert_true(config_flash_write(&flash, &board_log, &read));
    boot_from_flash(&read, &lines);
    assert_false(is_lost);
    assert_int_equal(lines, 0);
}

/* One that can be used, and one like it that is refused. */
static void make_good_and_bad(struct config *fine, struct config *bad)
{
    make_good_config(fine);
    *bad = *fine;
    set_mapped_ipv4(bad);
}

/* Nothing is logged about a copy that is older than the one in use. */
static void test_an_old_copy_is_not_judged(void **state)
{
    struct config fine, bad, read;
    unsigned int lines;

    (void)state;
    make_good_and_bad(&fine, &bad);
    put_config(FLASH_CONFIG_A_ADDR, 7, &bad);
    put_config(FLASH_CONFIG_B_ADDR, 8, &fine);
    boot_from_flash(&read, &lines);
    assert_int_equal(lines, 0);
    assert_int_equal(read.sequence, 8);
}

/* The copy in use is written last. */
static void test_a_change_is_written_over_the_bad_copy(void **state)
{
    struct config fine, bad, read;
    unsigned int lines;

    (void)state;
    make_good_and_bad(&fine, &bad);
    put_config(FLASH_CONFIG_A_ADDR, 7, &bad);
    put_config(FLASH_CONFIG_B_ADDR, 6, &fine);
    fine.port[1].mtu_bytes = 5000;
    assert_true(config_flash_write(&flash, &board_log, &fine));
    boot_from_flash(&read, &lines);
    assert_int_equal(lines, 0);
    assert_int_equal(read.sequence, 8);
    assert_int_equal(read.port[1].mtu_bytes, 5000);
    memset(part + FLASH_CONFIG_A_ADDR, 0xff, FLASH_SECTOR_BYTES);
    boot_from_flash(&read, &lines);
    assert_int_equal(read.sequence, 8);
    assert_int_equal(read.port[1].mtu_bytes, 5000);

    /* With two bad copies, the written one is newer than both. */
    put_config(FLASH_CONFIG_A_ADDR, 11, &bad);
    put_config(FLASH_CONFIG_B_ADDR, 12, &bad);
    assert_true(config_flash_write(&flash, &board_log, &fine));
    boot_from_flash(&read, &lines);
    assert_int_equal(lines, 0);
    assert_int_equal(read.sequence, 13);
}

/* A copy that was refused stays for the firmware or the tool that wrote it. */
static void test_a_refused_newer_copy_is_not_repaired(void **state)
{
    struct config fine, bad, read;
    unsigned int lines;

    (void)state;
    make_good_and_bad(&fine, &bad);
    put_config(FLASH_CONFIG_A_ADDR, 7, &bad);
    put_config(FLASH_CONFIG_B_ADDR, 6, &fine);
    config_flash_repair(&flash, &board_log, 0);
    boot_from_flash(&read, &lines);
    assert_int_equal(lines, 1);
    assert_int_equal(read.sequence, 6);
}

static void test_a_copy_that_is_written_again_is_logged(void **state)
{
    struct config fine, read;
    unsigned int lines;

    (void)state;
    make_good_config(&fine);
    assert_true(config_flash_write(&flash, &board_log, &fine));
    part[FLASH_CONFIG_A_ADDR + 50] ^= 1;
    boot_from_flash(&read, &lines);
    assert_int_equal(lines, 0);
    config_flash_repair(&flash, &board_log, 0);
    assert_non_null(strstr(board_log.ring, "was written again; if it was "
                                           "damaged, it may have held a later "
                                           "change: check the settings"));
    boot_from_flash(&read, &lines);
    config_flash_repair(&flash, &board_log, 0);
    assert_int_equal(board_log.head, 0);
}

static void test_a_locked_configuration_is_not_repaired(void **state)
{
    static uint8_t before[PART_BYTES];
    struct config fine, read;
    unsigned int lines;

    (void)state;
    make_good_config(&fine);
    assert_true(config_flash_write(&flash, &board_log, &fine));
    part[FLASH_CONFIG_A_ADDR + 50] ^= 1;
    memcpy(before, part, sizeof(before));
    boot_from_flash(&read, &lines);
    config_flash_repair(&flash, &board_log, STRAPS_LOCKED | STRAPS_10G);
    assert_memory_equal(part, before, sizeof(before));
    assert_int_equal(board_log.head, 0);
    config_flash_repair(&flash, &board_log, (uint8_t)~STRAPS_LOCKED);
    assert_memory_not_equal(part, before, sizeof(before));
}

TEST_FIXTURE(blank_part, NULL)
