/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The drive's answers to a BMC, packet by packet, with an I2C controller that
 * the test plays. pymctp makes the same PECs of these bytes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "firmware/bmc/bmc.h"
#include "tests/test_fixture.h"

#include <string.h>

#include "firmware/bmc/mi_check.h"
#include "lib/bytes.h"

enum { CONTROLLERS = 70 };

static struct {
    struct bmc bmc;
    struct i2c bus;
    uint8_t mail[I2C_TRANSFER_MAX];
    size_t mail_len;
    struct i2c_request *sent; /* until its end is told */
    unsigned int published[I2C_TARGET_IMAGES];
} world;

void i2c_submit(struct i2c *i2c, struct i2c_request *request)
{
    assert_ptr_equal(i2c, &world.bus);
    assert_null(world.sent);
    world.sent = request;
}

size_t i2c_take_mail(const struct i2c *i2c, uint8_t bytes[I2C_TRANSFER_MAX])
{
    size_t len = world.mail_len;

    assert_ptr_equal(i2c, &world.bus);
    memcpy(bytes, world.mail, len);
    world.mail_len = 0;
    return len;
}

void i2c_publish(const struct i2c *i2c, unsigned int image,
                 const uint8_t *bytes)
{
    assert_ptr_equal(i2c, &world.bus);
    assert_non_null(bytes);
    world.published[image]++;
}

void i2c_target_image(const struct i2c *i2c, unsigned int image, uint8_t addr)
{
    assert_ptr_equal(i2c, &world.bus);
    assert_int_equal(addr, image == 0 ? 0x6a : 0x53);
}

void i2c_target_mail(const struct i2c *i2c, uint8_t addr)
{
    assert_ptr_equal(i2c, &world.bus);
    assert_int_equal(addr, 0x1d);
}

static void drive_health(void *ctx, struct mi_health *health)
{
    (void)ctx;
    *health = (struct mi_health){
        .temperature_k = 313,
        .used_percent = 7,
        .spare_percent = 99,
        .is_functional = true,
        .link_up = {true, false},
    };
}

static unsigned int drive_controllers(void *ctx, struct mi_controller *list)
{
    (void)ctx;
    for (unsigned int i = 0; i < CONTROLLERS; i++) {
        list[i] = (struct mi_controller){.cntlid = (uint16_t)(0x100 + i),
                                         .status = MI_CSTS_READY};
    }
    return CONTROLLERS;
}

static int new_world(void **state)
{
    static const struct bmc_config config = {
        .bus = &world.bus,
        .source = {.health = drive_health, .controllers = drive_controllers},
        .vpd = {.manufacturer = "Maker",
                .product = "Disk",
                .part = "P1",
                .version = "0.1",
                .serial = "SN7"},
        .serial = "SN7                 ",
    };

    (void)state;
    memset(&world, 0, sizeof(world));
    bmc_init(&world.bmc, &config);
    return 0;
}

static bool take_step(uint64_t now_us)
{
    uint64_t deadline_us = UINT64_MAX;

    return bmc_step(&world.bmc, now_us, &deadline_us);
}

static void receive_mail(const uint8_t *bytes, size_t len)
{
    memcpy(world.mail, bytes, len);
    world.mail_len = len;
    assert_true(take_step(0));
}

/* The BMC acknowledges the packet that the drive sends, or does not. */
static void end_packet(enum i2c_outcome outcome)
{
    struct i2c_request *packet = world.sent;

    assert_non_null(packet);
    world.sent = NULL;
    packet->done(packet->ctx, packet, outcome);
}

static void expect_packet(const uint8_t *bytes, size_t len)
{
    assert_non_null(world.sent);
    assert_int_equal(world.sent->addr, 0x10);
    assert_int_equal(world.sent->read_len, 0);
    assert_int_equal(world.sent->write_len, len);
    assert_memory_equal(world.sent->bytes, bytes, len);
}

static const uint8_t set_eid[] = {0x0f, 0x0a, 0x21, 0x01, 0x00, 0x08, 0xcd,
                                  0x00, 0x80, 0x01, 0x00, 0x42, 0xb5};
static const uint8_t set_eid_response[] = {0x0f, 0x0c, 0x3b, 0x01, 0x08,
                                           0x42, 0xc5, 0x00, 0x00, 0x01,
                                           0x00, 0x00, 0x42, 0x00, 0x62};
/* NVM Subsystem Health Status Poll, with tag 3 for any endpoint. */
static const uint8_t poll[] = {0x0f, 0x19, 0x21, 0x01, 0x00, 0x08, 0xcb,
                               0x84, 0x08, 0x00, 0x00, 0x01, 0x00, 0x00,
                               0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
                               0x00, 0x00, 0xd2, 0xd4, 0x77, 0x36, 0xeb};
/* The same in two packets for endpoint 42h. */
static const uint8_t poll_start[] = {0x0f, 0x0f, 0x21, 0x01, 0x42, 0x08,
                                     0x8b, 0x84, 0x08, 0x00, 0x00, 0x01,
                                     0x00, 0x00, 0x00, 0x00, 0x00, 0xa5};
static const uint8_t poll_end[] = {0x0f, 0x0f, 0x21, 0x01, 0x42, 0x08,
                                   0x5b, 0x00, 0x00, 0x00, 0x00, 0x00,
                                   0x00, 0xd2, 0xd4, 0x77, 0x36, 0xc7};

/* The answer to a poll, in a packet with tag 3. */
static void expect_health(uint8_t eid)
{
    static const uint8_t message[] = {0x84, 0x88, 0,    0,  0, 0,    0,
                                      0,    0x38, 0xff, 40, 7, 0x00, 0};
    const uint8_t head[] = {0x20, 0x0f, 0x19, 0x3b, 1, 8, eid, 0xc3};
    const struct i2c_request *sent = world.sent;

    assert_non_null(sent);
    assert_int_equal(sent->write_len, 28);
    assert_memory_equal(sent->bytes, head + 1, 7);
    assert_memory_equal(sent->bytes + 7, message, 12);
    assert_int_equal(get_le32(sent->bytes + 23),
                     mi_crc32c(sent->bytes + 7, 16));
    assert_int_equal(sent->bytes[27],
                     mi_pec(mi_pec(0, head, 1), sent->bytes, 27));
    end_packet(I2C_OK);
    assert_null(world.sent);
}

static void test_an_endpoint_identifier_is_assigned_and_used(void **state)
{
    (void)state;
    receive_mail(set_eid, sizeof(set_eid));
    expect_packet(set_eid_response, sizeof(set_eid_response));
    end_packet(I2C_OK);
    receive_mail(poll, sizeof(poll));
    expect_health(0x42);
    assert_int_equal(world.bmc.counters.requests, 2);
    assert_int_equal(world.bmc.counters.responses, 2);
}

static void test_a_request_may_come_in_two_packets(void **state)
{
    (void)state;
    receive_mail(set_eid, sizeof(set_eid));
    end_packet(I2C_OK);
    receive_mail(poll_start, sizeof(poll_start));
    assert_null(world.sent);
    receive_mail(poll_end, sizeof(poll_end));
    expect_health(0x42);
}

static void test_a_packet_for_another_identifier_is_not_answered(void **state)
{
    (void)state;
    receive_mail(poll_start, sizeof(poll_start)); /* the drive has none yet */
    assert_int_equal(world.bmc.counters.bad_packets, 1);
    receive_mail(poll_end, sizeof(poll_end));
    assert_int_equal(world.bmc.counters.bad_packets, 2);
    assert_null(world.sent);
}

static void test_each_kind_of_damage_has_a_counter(void **state)
{
    uint8_t bytes[sizeof(poll)];
    uint8_t target = 0x3a;

    (void)state;
    memcpy(bytes, poll, sizeof(bytes));
    bytes[11] ^= 1;
    receive_mail(bytes, sizeof(bytes));
    assert_int_equal(world.bmc.counters.bad_pec, 1);
    bytes[27] = mi_pec(mi_pec(0, &target, 1), bytes, 27);
    receive_mail(bytes, sizeof(bytes));
    assert_int_equal(world.bmc.counters.bad_checks, 1);
    receive_mail(poll, sizeof(poll) - 1);
    assert_int_equal(world.bmc.counters.bad_packets, 1);
    bytes[7] = 0x7e; /* a vendor's message */
    bytes[27] = mi_pec(mi_pec(0, &target, 1), bytes, 27);
    receive_mail(bytes, sizeof(bytes));
    assert_int_equal(world.bmc.counters.bad_packets, 2);
    assert_null(world.sent);
    assert_int_equal(world.bmc.counters.requests, 2);
}

/* Ask for the list of controllers. */
static void ask_for_controllers(void)
{
    uint8_t bytes[sizeof(poll)];
    uint8_t target = 0x3a;

    memcpy(bytes, poll, sizeof(bytes));
    bytes[7 + 4] = 0x00;  /* Read NVMe-MI Data Structure */
    bytes[7 + 11] = 0x02; /* Controller List */
    put_le32(bytes + 7 + 16, mi_crc32c(bytes + 7, 16));
    bytes[27] = mi_pec(mi_pec(0, &target, 1), bytes, 27);
    receive_mail(bytes, sizeof(bytes));
}

static void test_a_long_response_has_packets_of_64_bytes(void **state)
{
    /* 8 bytes of header, the count, 70 identifiers, the check. */
    static const uint8_t flags[] = {0x83, 0x13, 0x63};
    static const size_t data_len[] = {64, 64, 8 + 2 + 140 + 4 - 128};
    uint8_t message[192];

    (void)state;
    ask_for_controllers();
    for (unsigned int i = 0; i < 3; i++) {
        assert_non_null(world.sent);
        assert_int_equal(world.sent->write_len, 7 + data_len[i] + 1);
        assert_int_equal(world.sent->bytes[1], 5 + data_len[i]);
        assert_int_equal(world.sent->bytes[6], flags[i]);
        memcpy(message + 64 * (size_t)i, world.sent->bytes + 7, data_len[i]);
        end_packet(I2C_OK);
    }
    assert_null(world.sent);
    assert_int_equal(get_le16(message + 8), CONTROLLERS);
    for (unsigned int i = 0; i < CONTROLLERS; i++) {
        assert_int_equal(get_le16(message + 10 + 2 * (size_t)i), 0x100 + i);
    }
    assert_int_equal(get_le32(message + 150), mi_crc32c(message, 150));
    assert_int_equal(world.bmc.counters.responses, 1);
}

static void test_a_packet_that_is_not_acknowledged_is_sent_again(void **state)
{
    struct i2c_request first;

    (void)state;
    ask_for_controllers();
    first = *world.sent;
    for (unsigned int i = 1; i < BMC_ATTEMPTS; i++) {
        end_packet(I2C_NO_TARGET);
        expect_packet(first.bytes, first.write_len);
    }
    end_packet(I2C_OK); /* the next packet has as many attempts */
    for (unsigned int i = 1; i < BMC_ATTEMPTS; i++) {
        assert_int_equal(world.sent->bytes[6], 0x13);
        end_packet(I2C_REFUSED);
    }
    end_packet(I2C_OK);
    end_packet(I2C_OK);
    assert_null(world.sent);
    assert_int_equal(world.bmc.counters.responses, 1);
    assert_int_equal(world.bmc.counters.unsent, 0);
}

static void test_a_response_that_nobody_takes_is_given_up(void **state)
{
    (void)state;
    ask_for_controllers();
    for (unsigned int i = 0; i < BMC_ATTEMPTS; i++) {
        end_packet(I2C_NO_TARGET);
    }
    assert_null(world.sent);
    assert_int_equal(world.bmc.counters.unsent, 1);
    receive_mail(poll, sizeof(poll));
    expect_health(0);
}

static void test_requests_wait_while_a_response_is_sent(void **state)
{
    (void)state;
    receive_mail(poll, sizeof(poll));
    memcpy(world.mail, set_eid, sizeof(set_eid));
    world.mail_len = sizeof(set_eid);
    assert_false(take_step(0));
    assert_int_equal(world.mail_len, sizeof(set_eid));
    expect_health(0);
    assert_true(take_step(0));
    expect_packet(set_eid_response, sizeof(set_eid_response));
}

static void test_the_basic_data_is_published_once_a_second(void **state)
{
    (void)state;
    assert_int_equal(world.published[0], 1);
    assert_int_equal(world.published[1], 1);
    (void)take_step(5);
    (void)take_step(1000004);
    assert_int_equal(world.published[0], 2);
    (void)take_step(1000005);
    assert_int_equal(world.published[0], 3);
    assert_int_equal(world.published[1], 1);
}

static void test_without_a_bus_there_is_nothing_to_do(void **state)
{
    (void)state;
    world.bmc.bus = NULL;
    assert_false(take_step(5));
    assert_int_equal(world.published[0], 1);
}

TEST_FIXTURE(new_world, NULL)
