/* SPDX-License-Identifier: BSD-2-Clause */
/* The management registers of the port's PHY, as a station on MDIO reads them.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <string.h>
#include <cmocka.h>

#include "lib/regfields.h"
#include "hw-model/port/hw_port.h"
#include "hw-model/regs/i2c.h"
#include "hw-model/regs/phy.h"
#include "hw-model/regs/port.h"
#include "tests/test_fixture.h"
#include "tests/unit/hw-model/port/port_bed.h"

enum { MBPS_10G = 10000, MBPS_25G = 25000 };

static struct hw_port port;
static struct test_env env;

static void ignore_link(void *ctx, bool is_up)
{
    (void)ctx;
    (void)is_up;
}

static int setup(void **state)
{
    struct hw_port_config config = {.ops = {.link_changed = ignore_link}};

    (void)state;
    memset(&env, 0, sizeof(env));
    config.env = test_env_init(&env, NULL, 0);
    hw_port_init(&port, &config);
    hw_port_set_cable(&port, true);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    return 0;
}

TEST_FIXTURE(setup, teardown)

static void set_link(bool is_enabled, uint32_t mbps)
{
    port_bed_write(&port, &env, A_PORT_LINK_CTRL,
                   FIELD_MAKE(PORT_LINK_CTRL, ENABLE, is_enabled) |
                       FIELD_MAKE(PORT_LINK_CTRL, SPEED_MBPS, mbps));
}

static uint16_t send_frame(bool is_clause45, uint8_t op, uint8_t reg,
                           uint16_t data)
{
    const struct mdio_frame frame = {
        .is_clause45 = is_clause45, .op = op, .reg = reg, .data = data};

    return hw_port_mdio(&port, &frame);
}

static uint16_t read_22(uint8_t reg)
{
    return send_frame(false, I2C_MDIO_OP_READ, reg, 0);
}

static uint16_t read_45(uint8_t device, uint16_t reg)
{
    send_frame(true, I2C_MDIO_OP_ADDRESS, device, reg);
    return send_frame(true, I2C_MDIO_OP_READ_45, device, 0);
}

/* The values are those of IEEE 802.3, written out. */
static void test_the_registers_of_a_link_that_is_up(void **state)
{
    static const struct {
        uint8_t device;
        uint16_t reg, at_25g, at_10g;
    } rows[] = {
        {1, 0, 0x2050, 0x2040},  {1, 1, 0x0006, 0x0006},
        {1, 2, 0x28a8, 0x28a8},  {1, 3, 0x0010, 0x0010},
        {1, 4, 0x0801, 0x0801},  {1, 5, 0x000b, 0x000b},
        {1, 6, 0x0000, 0x0000},  {1, 7, 0x003a, 0x0007},
        {1, 8, 0x8080, 0x8080},  {1, 9, 0x0000, 0x0000},
        {1, 10, 0x0001, 0x0001}, {3, 0, 0x2054, 0x2040},
        {3, 1, 0x0006, 0x0006},  {3, 2, 0x28a8, 0x28a8},
        {3, 3, 0x0010, 0x0010},  {3, 5, 0x000b, 0x000b},
        {3, 7, 0x0007, 0x0000},  {3, 8, 0x8081, 0x8081},
        {3, 32, 0x1001, 0x1001}, {3, 33, 0x0000, 0x0000},
    };
    struct phy_partner partner = port.partner;

    (void)state;
    set_link(true, MBPS_25G);
    read_45(1, 1); /* clears what has been latched */
    read_45(3, 1);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        assert_int_equal(read_45(rows[i].device, rows[i].reg), rows[i].at_25g);
    }
    partner.speed_mbps = MBPS_10G;
    hw_port_set_partner(&port, &partner);
    set_link(true, MBPS_10G);
    read_45(1, 1);
    read_45(3, 1);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        assert_int_equal(read_45(rows[i].device, rows[i].reg), rows[i].at_10g);
    }
}

static void test_the_registers_of_clause_22(void **state)
{
    (void)state;
    set_link(true, MBPS_25G);
    read_22(1);
    assert_int_equal(read_22(0), 0x2140);
    assert_int_equal(read_22(1), 0x0005);
    assert_int_equal(read_22(2), 0x28a8);
    assert_int_equal(read_22(3), 0x0010);
    for (uint8_t reg = 4; reg < 32; reg++) {
        assert_int_equal(read_22(reg), 0);
    }
    set_link(false, MBPS_25G);
    assert_int_equal(read_22(0), 0x2940);
    assert_int_equal(read_45(1, 0), 0x2850);
    assert_int_equal(read_45(3, 0), 0x2854);
}

/* Which link bits are 1 in each state of the link. */
static void test_each_layer_has_its_own_link_bit(void **state)
{
    static const struct {
        bool is_enabled, is_present, has_fault;
        uint16_t pma, pcs, link, fault;
    } rows[] = {
        {true, true, false, 4, 4, 4, 0},
        {true, true, true, 4, 4, 0, 0},
        {true, false, false, 0, 0, 0, 0x80},
        {false, true, false, 4, 0, 0, 0},
    };
    struct phy_partner partner = port.partner;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        partner.is_present = rows[i].is_present;
        partner.has_fault = rows[i].has_fault;
        hw_port_set_partner(&port, &partner);
        set_link(rows[i].is_enabled, MBPS_25G);
        read_45(1, 1);
        read_45(3, 1);
        read_22(1);
        assert_int_equal(read_45(1, 1), 2 | rows[i].pma | rows[i].fault);
        assert_int_equal(read_45(1, 10), rows[i].pma >> 2);
        assert_int_equal(read_45(3, 1), 2 | rows[i].pcs | rows[i].fault);
        assert_int_equal(read_45(3, 32), rows[i].pcs != 0 ? 0x1001 : 0);
        assert_int_equal(read_22(1), 1 | rows[i].link);
    }
}

/* A link that was down and is up again is 0 in one read of each register. */
static void test_a_link_bit_is_latching_low(void **state)
{
    (void)state;
    set_link(true, MBPS_25G);
    assert_int_equal(read_22(1), 1); /* it was down at power-on */
    assert_int_equal(read_22(1), 5);
    read_45(1, 1);
    read_45(3, 1);
    hw_port_set_cable(&port, false);
    hw_port_set_cable(&port, true);
    for (unsigned int i = 0; i < 2; i++) {
        assert_int_equal(read_22(1), i == 0 ? 1 : 5);
        assert_int_equal(read_45(1, 1), i == 0 ? 2 : 6);
        assert_int_equal(read_45(3, 1), i == 0 ? 2 : 6);
    }
    hw_port_reset(&port);
    set_link(true, MBPS_25G);
    assert_int_equal(read_22(1), 1);
    assert_int_equal(read_22(1), 5);
}

static void test_each_device_keeps_the_number_of_its_register(void **state)
{
    (void)state;
    send_frame(true, I2C_MDIO_OP_ADDRESS, 1, 2);
    send_frame(true, I2C_MDIO_OP_ADDRESS, 3, 32);
    assert_int_equal(send_frame(true, I2C_MDIO_OP_READ, 1, 0), 0x28a8);
    assert_int_equal(send_frame(true, I2C_MDIO_OP_READ, 1, 0), 0x0010);
    assert_int_equal(send_frame(true, I2C_MDIO_OP_READ, 1, 0), 0x0801);
    assert_int_equal(send_frame(true, I2C_MDIO_OP_READ_45, 1, 0), 0x000b);
    assert_int_equal(send_frame(true, I2C_MDIO_OP_READ_45, 1, 0), 0x000b);
    set_link(true, MBPS_25G);
    assert_int_equal(send_frame(true, I2C_MDIO_OP_READ, 3, 0), 0x1001);
    /* The last register is not followed by another. */
    send_frame(true, I2C_MDIO_OP_ADDRESS, 1, 0xffff);
    assert_int_equal(send_frame(true, I2C_MDIO_OP_READ, 1, 0), 0);
    assert_int_equal(send_frame(true, I2C_MDIO_OP_READ, 1, 0), 0);
    hw_port_reset(&port);
    assert_int_equal(send_frame(true, I2C_MDIO_OP_READ_45, 1, 0), 0x2850);
}

static void test_writes_change_no_register(void **state)
{
    (void)state;
    set_link(true, MBPS_25G);
    send_frame(false, I2C_MDIO_OP_WRITE, 0, 0x8800);
    send_frame(true, I2C_MDIO_OP_ADDRESS, 1, 0);
    send_frame(true, I2C_MDIO_OP_WRITE, 1, 0x8800);
    assert_int_equal(read_45(1, 0), 0x2050);
    assert_int_equal(read_22(0), 0x2140);
}

static void test_other_phys_and_devices_do_not_answer(void **state)
{
    struct mdio_frame other = {.op = I2C_MDIO_OP_READ, .reg = 2};

    (void)state;
    for (other.phy = 1; other.phy < 32; other.phy++) {
        assert_int_equal(hw_port_mdio(&port, &other), 0xffff);
    }
    for (uint8_t device = 0; device < 32; device++) {
        assert_int_equal(read_45(device, 2),
                         device == 1 || device == 3 ? 0x28a8 : 0xffff);
    }
    /* Clause 22 has no such operation. */
    assert_int_equal(send_frame(false, I2C_MDIO_OP_READ_45, 2, 0), 0xffff);
}
