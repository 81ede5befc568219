/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Seam between a controller of an MDIO bus and what is on the bus: one frame at
 * a time, each a read or a write.
 * Spec: IEEE 802.3 clauses 22.2.4.5 and 45.3
 */
#ifndef ESSD_HW_CORE_MDIO_H
#define ESSD_HW_CORE_MDIO_H

#include "lib/util.h"

struct mdio_frame {
    bool is_clause45;
    uint8_t op;    /* enum i2c_mdio_op */
    uint8_t phy;   /* 0 to 31 */
    uint8_t reg;   /* the register; clause 45: the device */
    uint16_t data; /* of a write; clause 45: or the register's number */
};

enum { MDIO_NOBODY = 0xffff }; /* what a read returns if no PHY answers */

struct mdio_bus {
    void *ctx;

    /* Handle a frame; a read returns the data.  NULL: the bus has no PHY. */
    uint16_t (*frame)(void *ctx, const struct mdio_frame *frame);
};

#endif
