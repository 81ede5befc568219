/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The port's PHY on its MDIO bus: see hw_port.h.  All registers are read-only,
 * because the port's own registers control the PHY.
 * Spec: IEEE 802.3 clauses 22.2.4, 45.2.1 and 45.2.3
 * Reference: docs/hardware/i2c.md, section 5
 *
 * Not modelled: writes of registers, FEC, auto-negotiation, counters of errors.
 */
#include "hw-model/port/hw_port_internal.h"

#include <string.h>

#include "hw-model/regs/i2c.h"
#include "hw-model/regs/phy.h"

/* What the link bits report; each has a bit in mdio_low. */
enum level {
    LEVEL_SIGNAL, /* PMA: a signal is received */
    LEVEL_LOCK,   /* PCS: the signal is decoded */
    LEVEL_LINK,   /* clause 22: the link is up */
    LEVELS,
};

static bool is_high(const struct phy_link *link, enum level level)
{
    switch (level) {
    case LEVEL_SIGNAL:
        return link->has_signal;
    case LEVEL_LOCK:
        return link->reason == PORT_REASON_NONE || link->has_remote_fault;
    default:
        return link->reason == PORT_REASON_NONE;
    }
}

void port_mdio_note_link(struct hw_port *port, const struct phy_link *link)
{
    for (unsigned int i = 0; i < LEVELS; i++) {
        if (!is_high(link, (enum level)i)) {
            port->mdio_low |= (uint8_t)BIT(i);
        }
    }
}

void port_mdio_reset(struct hw_port *port)
{
    memset(port->mdio_reg, 0, sizeof(port->mdio_reg));
    port->mdio_low = (uint8_t)(BIT(LEVELS) - 1);
}

/* A link bit that was 0 since the last read is 0 once more: it is latching low
 * (clause 45.2). */
static bool read_level(struct hw_port *port, enum level level)
{
    struct phy_link link = hw_port_link(port);
    bool was_low = port->mdio_low & BIT(level);

    port->mdio_low &= (uint8_t)~BIT(level);
    return is_high(&link, level) && !was_low;
}

static bool is_25g(const struct hw_port *port)
{
    return FIELD_GET(port->link_ctrl, PORT_LINK_CTRL, SPEED_MBPS) == 25000;
}

static bool is_off(const struct hw_port *port)
{
    return !FIELD_GET(port->link_ctrl, PORT_LINK_CTRL, ENABLE);
}

/* Both speed bits of clause 22 are 1: bits 5 to 2 have the speed. */
static uint32_t control_value(const struct hw_port *port, uint32_t speed)
{
    return FIELD_MAKE(PHY_CONTROL_1, SPEED_LOW, 1) |
           FIELD_MAKE(PHY_CONTROL_1, SPEED_HIGH, 1) |
           FIELD_MAKE(PHY_CONTROL_1, OFF, is_off(port)) |
           FIELD_MAKE(PHY_CONTROL_1, SPEED, speed);
}

static uint32_t status_45(struct hw_port *port, enum level level)
{
    return FIELD_MAKE(PHY_STATUS_1, CAN_BE_OFF, 1) |
           FIELD_MAKE(PHY_STATUS_1, LINK, read_level(port, level)) |
           FIELD_MAKE(PHY_STATUS_1, FAULT, hw_port_link(port).has_local_fault);
}

static uint32_t read_22(struct hw_port *port, uint32_t reg)
{
    switch (reg) {
    case PHY_CONTROL_1:
        return control_value(port, 0) |
               FIELD_MAKE(PHY_CONTROL_1, FULL_DUPLEX, 1);
    case PHY_STATUS_1:
        return FIELD_MAKE(PHY_STATUS_1, EXTENDED, 1) |
               FIELD_MAKE(PHY_STATUS_1, LINK, read_level(port, LEVEL_LINK));
    case PHY_ID_REG_1:
        return PHY_ID_1;
    case PHY_ID_REG_2:
        return PHY_ID_2;
    default:
        return 0;
    }
}

/* The registers that both devices have. */
static uint32_t read_common(uint32_t reg)
{
    switch (reg) {
    case PHY_ID_REG_1:
        return PHY_ID_1;
    case PHY_ID_REG_2:
        return PHY_ID_2;
    case PHY_PACKAGE_1:
        return FIELD_MAKE(PHY_PACKAGE_1, CLAUSE22, 1) |
               FIELD_MAKE(PHY_PACKAGE_1, PMA, 1) |
               FIELD_MAKE(PHY_PACKAGE_1, PCS, 1);
    default:
        return 0;
    }
}

static uint32_t read_pma(struct hw_port *port, uint32_t reg)
{
    switch (reg) {
    case PHY_CONTROL_1:
        return control_value(port,
                             is_25g(port) ? PHY_SPEED_25G_PMA : PHY_SPEED_10G);
    case PHY_STATUS_1:
        return status_45(port, LEVEL_SIGNAL);
    case PHY_SPEED_ABILITY:
        return FIELD_MAKE(PHY_SPEED_ABILITY, S10G, 1) |
               FIELD_MAKE(PHY_SPEED_ABILITY, S25G, 1);
    case PHY_CONTROL_2:
        return FIELD_MAKE(PHY_CONTROL_2, PMA_TYPE,
                          is_25g(port) ? PHY_25GBASE_SR : PHY_10GBASE_SR);
    case PHY_STATUS_2:
        return FIELD_MAKE(PHY_STATUS_2, PRESENT, PHY_PRESENT) |
               FIELD_MAKE(PHY_STATUS_2, S10GBASE_SR, 1);
    case PHY_PMA_SIGNAL:
        return FIELD_MAKE(PHY_PMA_SIGNAL, DETECTED,
                          hw_port_link(port).has_signal);
    default:
        return read_common(reg);
    }
}

static uint32_t read_pcs(struct hw_port *port, uint32_t reg)
{
    struct phy_link link = hw_port_link(port);

    switch (reg) {
    case PHY_CONTROL_1:
        return control_value(port,
                             is_25g(port) ? PHY_SPEED_25G_PCS : PHY_SPEED_10G);
    case PHY_STATUS_1:
        return status_45(port, LEVEL_LOCK);
    case PHY_CONTROL_2:
        return FIELD_MAKE(PHY_CONTROL_2, PCS_TYPE,
                          is_25g(port) ? PHY_25GBASE_R : PHY_10GBASE_R);
    case PHY_STATUS_2:
        return FIELD_MAKE(PHY_STATUS_2, PRESENT, PHY_PRESENT) |
               FIELD_MAKE(PHY_STATUS_2, S10GBASE_R, 1) |
               FIELD_MAKE(PHY_STATUS_2, S25GBASE_R, 1);
    case PHY_PCS_STATUS_R:
        return FIELD_MAKE(PHY_PCS_STATUS_R, LOCK, is_high(&link, LEVEL_LOCK)) |
               FIELD_MAKE(PHY_PCS_STATUS_R, LINK, is_high(&link, LEVEL_LOCK));
    default:
        return read_common(reg);
    }
}

/* @return where the number of a device's next register is, or NULL */
static uint16_t *number_of(struct hw_port *port, uint8_t device)
{
    switch (device) {
    case PHY_MMD_PMA:
        return &port->mdio_reg[0];
    case PHY_MMD_PCS:
        return &port->mdio_reg[1];
    default:
        return NULL;
    }
}

static uint16_t run_frame_45(struct hw_port *port,
                             const struct mdio_frame *frame)
{
    uint16_t *number = number_of(port, frame->reg);
    uint32_t value;

    if (number == NULL) {
        return MDIO_NOBODY;
    }
    if (frame->op == I2C_MDIO_OP_ADDRESS) {
        *number = frame->data;
    }
    if (frame->op != I2C_MDIO_OP_READ && frame->op != I2C_MDIO_OP_READ_45) {
        return 0;
    }
    value = frame->reg == PHY_MMD_PMA ? read_pma(port, *number)
                                      : read_pcs(port, *number);
    if (frame->op == I2C_MDIO_OP_READ && *number != UINT16_MAX) {
        (*number)++;
    }
    return (uint16_t)value;
}

uint16_t hw_port_mdio(void *ctx, const struct mdio_frame *frame)
{
    struct hw_port *port = ctx;

    if (frame->phy != PHY_MDIO_ADDR) {
        return MDIO_NOBODY;
    }
    if (frame->is_clause45) {
        return run_frame_45(port, frame);
    }
    return frame->op == I2C_MDIO_OP_READ ? (uint16_t)read_22(port, frame->reg)
                                         : MDIO_NOBODY;
}
