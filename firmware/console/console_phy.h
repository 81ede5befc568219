/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The console's `phy` command: docs/console.md, "I2C and MDIO".
 *
 * A command ends when its frames have been sent, after console_phy() has
 * returned.
 */
#ifndef ESSD_CONSOLE_CONSOLE_PHY_H
#define ESSD_CONSOLE_CONSOLE_PHY_H

#include "firmware/drivers/mdio.h"
#include "firmware/hal/log.h"

enum { CONSOLE_PHY_READS = 7 };

/* Treat as opaque. */
struct console_phy {
    struct log *log;
    struct i2c *buses; /* MDIO of port n is on the pins of bus n */
    bool is_busy;      /* a frame of a command is in progress */
    uint8_t port;
    uint8_t last_port;
    unsigned int reads; /* that have ended */
    uint16_t value[CONSOLE_PHY_READS];
    struct mdio_read read;
};

/** @param words  "phy" and its arguments, `count` words in all */
void console_phy(struct console_phy *console, struct log *log,
                 struct i2c *buses, char **words, unsigned int count);

/** Whether the last command has not ended. */
static inline bool console_phy_is_busy(const struct console_phy *console)
{
    return console->is_busy;
}

#endif
