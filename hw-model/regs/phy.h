/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Management registers of a port's PHY, which are read over MDIO.  Includes
 * nothing; include it after QEMU's hw/registerfields.h or lib/regfields.h.
 * All are read-only; the port's registers control the PHY.
 * Spec: IEEE 802.3 clauses 22.2.4 and 45.2.  Reference: docs/hardware/i2c.md,
 * section 5
 */
#ifndef ESSD_REGS_PHY_H
#define ESSD_REGS_PHY_H

enum {
    PHY_MDIO_ADDR = 0, /* each MDIO bus has one PHY */
    PHY_ID_1 = 0x28a8, /* OUI 52-54-00 */
    PHY_ID_2 = 0x0010, /* model 1, revision 0 */
};

/* MDIO manageable devices of clause 45. */
enum phy_mmd {
    PHY_MMD_PMA = 1, /* PMA and PMD: the signal */
    PHY_MMD_PCS = 3, /* the code on it */
};

/* Registers of clause 22 and, with the same numbers, of both devices. */
enum {
    PHY_CONTROL_1 = 0,
    PHY_STATUS_1 = 1,
    PHY_ID_REG_1 = 2,
    PHY_ID_REG_2 = 3,
};

/* Registers of clause 45 alone. */
enum {
    PHY_SPEED_ABILITY = 4, /* PMA */
    PHY_PACKAGE_1 = 5,     /* which devices the PHY has */
    PHY_CONTROL_2 = 7,     /* its type */
    PHY_STATUS_2 = 8,
    PHY_PMA_SIGNAL = 10,
    PHY_PCS_STATUS_R = 32, /* BASE-R PCS status 1 */
};

/* clang-format off */
    FIELD(PHY_CONTROL_1, SPEED, 2, 4)        /* if the next two are 1 */
    FIELD(PHY_CONTROL_1, SPEED_HIGH, 6, 1)
    FIELD(PHY_CONTROL_1, FULL_DUPLEX, 8, 1)  /* clause 22 */
    FIELD(PHY_CONTROL_1, OFF, 11, 1)         /* the port is not enabled */
    FIELD(PHY_CONTROL_1, SPEED_LOW, 13, 1)

    FIELD(PHY_STATUS_1, EXTENDED, 0, 1)      /* clause 22: registers above 1 */
    FIELD(PHY_STATUS_1, CAN_BE_OFF, 1, 1)    /* clause 45 */
    FIELD(PHY_STATUS_1, LINK, 2, 1)          /* latching low */
    FIELD(PHY_STATUS_1, FAULT, 7, 1)         /* clause 45: local fault */

    FIELD(PHY_SPEED_ABILITY, S10G, 0, 1)
    FIELD(PHY_SPEED_ABILITY, S25G, 11, 1)

    FIELD(PHY_PACKAGE_1, CLAUSE22, 0, 1)
    FIELD(PHY_PACKAGE_1, PMA, 1, 1)
    FIELD(PHY_PACKAGE_1, PCS, 3, 1)

    FIELD(PHY_CONTROL_2, PMA_TYPE, 0, 7)
    FIELD(PHY_CONTROL_2, PCS_TYPE, 0, 4)

    FIELD(PHY_STATUS_2, S10GBASE_R, 0, 1)    /* PCS */
    FIELD(PHY_STATUS_2, S10GBASE_SR, 7, 1)   /* PMA */
    FIELD(PHY_STATUS_2, S25GBASE_R, 7, 1)    /* PCS */
    FIELD(PHY_STATUS_2, PRESENT, 14, 2)      /* PHY_PRESENT */

    FIELD(PHY_PMA_SIGNAL, DETECTED, 0, 1)

    FIELD(PHY_PCS_STATUS_R, LOCK, 0, 1)      /* block lock */
    FIELD(PHY_PCS_STATUS_R, LINK, 12, 1)
/* clang-format on */

enum {
    PHY_PRESENT = 2, /* a device answers at this address */
    PHY_SPEED_10G = 0,
    PHY_SPEED_25G_PMA = 4,
    PHY_SPEED_25G_PCS = 5,
    PHY_10GBASE_SR = 0x07,
    PHY_25GBASE_SR = 0x3a,
    PHY_10GBASE_R = 0,
    PHY_25GBASE_R = 7,
};

#endif
