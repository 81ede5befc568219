/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads registers of a PHY over MDIO, on the pins of an I2C controller.  While
 * a frame is on the pins, for 26 us, the drive answers no one on I2C.
 * Spec: IEEE 802.3 clauses 22.2.4.5 and 45.3
 * Reference: docs/hardware/i2c.md, section 5
 *
 * Not implemented: writes.
 */
#ifndef ESSD_DRIVERS_MDIO_H
#define ESSD_DRIVERS_MDIO_H

#include "firmware/drivers/i2c.h"

enum {
    MDIO_CLAUSE22 = 0xff, /* instead of a device */
    MDIO_NO_ANSWER = 0xffff,
};

struct mdio_read {
    uint8_t phy;
    uint8_t device; /* of clause 45, or MDIO_CLAUSE22 */
    uint16_t reg;   /* clause 22: 0 to 31 */

    /**
     * The register has been read; the request belongs to the caller again.
     *
     * @param value  MDIO_NO_ANSWER if no PHY answers, or the controller has no
     *               MDIO
     */
    void (*done)(void *ctx, struct mdio_read *read, uint16_t value);
    void *ctx;
    struct i2c_request frames[2]; /* the driver's */
};

/** Queue a read.  `done` is called by i2c_poll(), never by this. */
void mdio_submit(struct i2c *bus, struct mdio_read *read);

#endif
