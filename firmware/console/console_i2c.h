/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The console's `i2c` command: docs/console.md, "I2C and MDIO".
 *
 * A command ends when its transfers have ended, after console_i2c() has
 * returned.
 */
#ifndef ESSD_CONSOLE_CONSOLE_I2C_H
#define ESSD_CONSOLE_CONSOLE_I2C_H

#include "firmware/drivers/i2c.h"
#include "firmware/hal/log.h"

enum { CONSOLE_I2C_ROW = 16 };

/* Treat as opaque. */
struct console_i2c {
    struct log *log;
    bool is_busy; /* a transfer of a command is in progress */
    unsigned int bus_number;
    struct i2c *bus;
    struct i2c_request request;
    uint32_t first_offset; /* of the bytes that are read */
    /* A scan: addresses that have answered and are not printed yet. */
    uint8_t found[CONSOLE_I2C_ROW];
    unsigned int found_count;
    bool has_found;
};

/** @param words  "i2c" and its arguments, `count` words in all; the buses are
 *                those of the drive, SOC_I2CS of them */
void console_i2c(struct console_i2c *console, struct log *log,
                 struct i2c *buses, char **words, unsigned int count);

/** Whether the last command has not ended. */
static inline bool console_i2c_is_busy(const struct console_i2c *console)
{
    return console->is_busy;
}

#endif
