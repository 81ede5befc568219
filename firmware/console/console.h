/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The command interpreter on the UART: docs/console.md.
 *
 * Answers go to the log's ring, so that console and log do not wait for each
 * other.  A line that is too long is refused, and so is a command while the
 * ring has no room for its answer.
 *
 * Not implemented: history, and editing other than backspace.  A drive that
 * cannot serve hosts has no console.
 */
#ifndef ESSD_CONSOLE_CONSOLE_H
#define ESSD_CONSOLE_CONSOLE_H

#include "firmware/console/console_i2c.h"
#include "firmware/console/console_phy.h"
#include "firmware/drivers/uart.h"

enum { CONSOLE_LINE_MAX = 360 }; /* characters */

struct request_parts;

struct console {
    struct uart *uart;
    struct log *log;
    const struct request_parts *parts;
    uint64_t poll_us; /* the UART is polled again at this time */
    uint32_t len;
    bool is_too_long;
    bool was_return; /* the last character was CR: a LF after it is ignored */
    bool is_waiting; /* a command has not ended; typed characters wait */
    struct console_i2c i2c;
    struct console_phy phy;
    char line[CONSOLE_LINE_MAX + 1];
};

/** Initialise the console and enable the UART's receive interrupt.
 * @param parts  of the drive that the commands are about; it outlives the
 * console */
void console_init(struct console *console, struct uart *uart,
                  const struct request_parts *parts);

/**
 * Read typed characters and execute complete lines.  The UART is polled every
 * 50 ms, because reading its registers is slow, and at once after
 * console_wake().
 *
 * @param budget  the largest number of characters to read
 * @return whether any character was read
 */
bool console_step(struct console *console, uint64_t now_us, uint32_t budget);

/**
 * Poll the UART at the next step, because it has raised its receive interrupt.
 */
void console_wake(struct console *console);

#endif
