/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The command interpreter on the UART: docs/console.md.
 *
 * It shares the log's ring, so that neither waits for the other.  A line that
 * is too long is refused; so is one when the ring has no room for an answer.
 *
 * Left out: history, editing but for backspace; a drive that does not serve has
 * no console.
 */
#ifndef ESSD_APP_CONSOLE_H
#define ESSD_APP_CONSOLE_H

#include "firmware/app/drive.h"
#include "firmware/drivers/uart.h"

enum { CONSOLE_LINE_MAX = 120 }; /* characters */

struct console {
    struct uart *uart;
    struct log *log;
    struct drive *drive;
    uint64_t poll_us; /* the UART is not looked at before */
    uint32_t len;
    bool is_too_long;
    bool was_return; /* a line feed behind it says nothing new */
    char line[CONSOLE_LINE_MAX + 1];
};

/** Listen, with the UART's receive interrupt on. */
void console_init(struct console *console, struct uart *uart, struct log *log,
                  struct drive *drive);

/**
 * Take what has been typed, and do it.  The UART is looked at every 50 ms, and
 * at once after console_wake(): reading its registers takes time.
 *
 * @param budget  characters at most
 * @return whether anything had been typed
 */
bool console_step(struct console *console, uint64_t now_us, uint32_t budget);

/** The UART's interrupt says that there is a character. */
void console_wake(struct console *console);

#endif
