/* SPDX-License-Identifier: BSD-2-Clause */
/* The console: a 16550 with 16-byte FIFOs, polled. */
#ifndef ESSD_DRIVERS_UART_H
#define ESSD_DRIVERS_UART_H

#include "firmware/hal/log.h"
#include "lib/util.h"

struct uart {
    uintptr_t base;
};

/* Set 115200 bit/s, 8 data bits, no parity, FIFOs on, no interrupts. */
void uart_init(struct uart *uart, uintptr_t base);

/*
 * Send as many of the `len` bytes as fit now.
 * @return the number of bytes sent
 */
size_t uart_write(const struct uart *uart, const char *text, size_t len);

/* Wait until the last bit of everything written is sent. */
void uart_drain(const struct uart *uart);

/* Return the UART as a sink for the log; `uart` must outlive the log. */
struct log_sink uart_log_sink(struct uart *uart);

/* Enable the interrupt that is raised while there is a received character. */
void uart_irq_enable(const struct uart *uart);

/*
 * Take one received character.
 * @return false when there is none
 */
MUST_USE bool uart_read(const struct uart *uart, char *c);

#endif
