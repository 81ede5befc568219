/* SPDX-License-Identifier: BSD-2-Clause */
/* The console's commands for what is on the I2C and MDIO buses. */
#include "bed_fixture.h"

#include <stdio.h>
#include <string.h>

#include "tests/test_fixture.h"

enum { SENSOR_BUS = 2, BASIC_COMMAND_AT = 0x6a };

TEST_FIXTURE(setup, teardown)

static bool answer_always(void *ctx, uint8_t addr, bool is_read)
{
    (void)ctx;
    (void)addr;
    (void)is_read;
    return true;
}

/* Expect the whole answer to a line. */
static void expect_answer(const char *line, const char *answer)
{
    char typed[64], want[512];

    snprintf(typed, sizeof(typed), "%s\r", line);
    snprintf(want, sizeof(want), "%s\n%s\nessd> ", line, answer);
    assert_string_equal(type_line(typed), want);
}

static void test_the_console_lists_the_devices_of_a_bus(void **state)
{
    (void)state;
    expect_answer("i2c scan 0", "bus 0: 50 51");
    expect_answer("i2c scan 2", "bus 2: 48 49");
    bed.drive->machine.i2c_wires[1].module.is_present = false;
    expect_answer("i2c scan 1", "bus 1: no device answers");
}

static void test_a_scan_prints_at_most_16_addresses_in_a_line(void **state)
{
    struct hw_i2c_wires *wires = &bed.drive->machine.i2c[2].config.wires;

    (void)state;
    wires->start = answer_always;
    expect_answer("i2c scan 2",
                  "bus 2: 08 09 0a 0b 0c 0d 0e 0f 10 11 12 13 14 15 16 17\n"
                  "bus 2: 18 19 1a 1b 1c 1d 1e 1f 20 21 22 23 24 25 26 27\n"
                  "bus 2: 28 29 2a 2b 2c 2d 2e 2f 30 31 32 33 34 35 36 37\n"
                  "bus 2: 38 39 3a 3b 3c 3d 3e 3f 40 41 42 43 44 45 46 47\n"
                  "bus 2: 48 49 4a 4b 4c 4d 4e 4f 50 51 52 53 54 55 56 57\n"
                  "bus 2: 58 59 5a 5b 5c 5d 5e 5f 60 61 62 63 64 65 66 67\n"
                  "bus 2: 68 69 6a 6b 6c 6d 6e 6f 70 71 72 73 74 75 76 77");
}

static void test_the_console_reads_and_writes_a_device(void **state)
{
    (void)state;
    expect_answer("i2c read 0 50 44 4", "0044: 45 53 53 44"); /* "ESSD" */
    expect_answer("i2c read 0 50 - 4", "0000: 53 46 50 30");  /* then "SFP0" */
    expect_answer("i2c read 1 50 44 18",
                  "0044: 45 53 53 44 53 46 50 31 20 20 20 20 20 20 20 20\n"
                  "0054: 32 36");
    expect_answer("i2c write 2 48 00", "ok");
    expect_answer("i2c read 2 48 - 2", "0000: 28 00"); /* 40 degrees */
    expect_answer("i2c write 2 48 01", "ok");          /* another register */
    expect_answer("i2c read 2 48 - 2", "0000: ff ff");
}

static void test_an_offset_of_more_than_two_digits_has_two_bytes(void **state)
{
    struct i2c_listener *listener =
        &bed.drive->machine.i2c_wires[SENSOR_BUS].listener;

    (void)state;
    listener->addr = 0x50;
    expect_answer("i2c read 2 50 0a0 1",
                  "error: no device answers at address 50 of bus 2");
    assert_int_equal(listener->len, 2); /* a listener cannot be read */
    assert_memory_equal(listener->bytes, "\x00\xa0", 2);
    expect_answer("i2c read 2 50 a0 1",
                  "error: no device answers at address 50 of bus 2");
    assert_int_equal(listener->len, 1);
    assert_int_equal(listener->bytes[0], 0xa0);
    expect_answer("i2c write 2 50 00Ff7e", "ok");
    assert_int_equal(listener->len, 3);
    assert_memory_equal(listener->bytes, "\x00\xff\x7e", 3);
}

static void test_mistakes_in_commands_for_a_bus_are_named(void **state)
{
    static const struct {
        const char *line, *answer;
    } rows[] = {
        {"i2c scan 3", "error: there is no bus 3; the buses are 0 to 2"},
        {"i2c scan x", "error: there is no bus x; the buses are 0 to 2"},
        {"i2c read 2 80 0 1",
         "error: 80 is no address: write 00 to 7f, in hexadecimal"},
        {"i2c read 2 50 00000 1",
         "error: 00000 is no offset: write 1 or 2 digits for one byte, 3 or 4 "
         "for two, in hexadecimal, or - for none"},
        {"i2c read 2 50 0 0",
         "error: 0 is no length: write 1 to 256, in decimal"},
        {"i2c read 2 50 0 257",
         "error: 257 is no length: write 1 to 256, in decimal"},
        {"i2c write 2 50 123",
         "error: write bytes of two hexadecimal digits each, at most 256, "
         "without spaces"},
        {"i2c write 2 50 1x",
         "error: write bytes of two hexadecimal digits each, at most 256, "
         "without spaces"},
        {"i2c write 2 33 00",
         "error: no device answers at address 33 of bus 2"},
        {"i2c write 0 50 0102", "error: the device at address 50 refuses a "
                                "byte"},
        {"i2c scan 0 1", "error: i2c scan BUS, i2c read BUS ADDRESS OFFSET "
                         "LENGTH or i2c write BUS ADDRESS BYTES"},
        {"i2c scan", "error: i2c scan|read|write..."},
        {"phy 2", "error: there is no port 2; the ports are 0 and 1"},
        {"phy 0 32", "error: 32 is no register: write 0 to 31 for one of "
                     "clause 22, or DEVICE.REGISTER for one of clause 45, "
                     "such as 1.0, in decimal"},
        {"phy 0 1.", "error: 1. is no register: write 0 to 31 for one of "
                     "clause 22, or DEVICE.REGISTER for one of clause 45, "
                     "such as 1.0, in decimal"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        expect_answer(rows[i].line, rows[i].answer);
    }
}

/* Plug or pull the cable of port 1, and let the firmware log that. */
static void plug_port1(bool is_plugged)
{
    hw_port_set_cable(&bed.drive->machine.ports[1], is_plugged);
    native_world_pass(&bed.world, 1000000);
}

static void test_the_console_shows_the_phys(void **state)
{
    struct phy_partner partner = bed.drive->machine.ports[1].partner;

    (void)state;
    (void)type_line("phy\r"); /* the links were down at the start */
    expect_answer("phy", "port 0: PHY 28a8 0010, 25 Gb/s, signal yes, lock "
                         "yes, link up\n"
                         "port 1: PHY 28a8 0010, 25 Gb/s, signal yes, lock "
                         "yes, link up");
    plug_port1(false);
    expect_answer("phy 1", "port 1: PHY 28a8 0010, 25 Gb/s, signal no, lock "
                           "no, link down");
    plug_port1(true);
    expect_answer("phy 1", "port 1: PHY 28a8 0010, 25 Gb/s, signal yes, lock "
                           "yes, link up");
    plug_port1(false);
    plug_port1(true);
    expect_answer("phy 1", "port 1: PHY 28a8 0010, 25 Gb/s, signal yes, lock "
                           "yes, link up (has been down)");
    partner.speed_mbps = 10000;
    hw_port_set_partner(&bed.drive->machine.ports[1], &partner);
    (void)type_line("speed 10\r");
    expect_answer("phy 1", "port 1: PHY 28a8 0010, 10 Gb/s, signal yes, lock "
                           "yes, link up (has been down)");
    bed.drive->machine.i2c[0].config.mdio.frame = NULL;
    expect_answer("phy 0", "port 0: no PHY answers");
}

static void test_the_console_reads_one_register_of_a_phy(void **state)
{
    (void)state;
    expect_answer("phy 0 2", "28a8");
    expect_answer("phy 1 1.0", "2050");
    expect_answer("phy 1 3.32", "1001");
    expect_answer("phy 1 1.65535", "0000");
    expect_answer("phy 1 4.0", "ffff");
}

/* The pins carry I2C before and after the frames, in both directions. */
static void test_a_read_of_a_phy_gives_the_pins_back(void **state)
{
    const struct hw_i2c *bmc_bus = &bed.drive->machine.i2c[1];

    (void)state;
    assert_true(hw_i2c_target_matches(bmc_bus, BASIC_COMMAND_AT));
    expect_answer("phy 1 1.2", "28a8");
    assert_true(hw_i2c_target_matches(bmc_bus, BASIC_COMMAND_AT));
    expect_answer("i2c scan 1", "bus 1: 50 51");
}

/* What is typed meanwhile is the next command. */
static void test_a_command_that_waits_for_a_bus_delays_the_next_one(
    void **state)
{
    const char *said = type_line("i2c read 0 50 44 1\rphy 0 2\r");

    (void)state;
    assert_string_equal(said, "i2c read 0 50 44 1\n0044: 45\nessd> "
                              "phy 0 2\n28a8\nessd> ");
}
