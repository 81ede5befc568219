/* SPDX-License-Identifier: BSD-2-Clause */
/* The console: a 16550 with 16-byte FIFOs, polled. */
#ifndef ESSD_DRIVERS_UART_H
#define ESSD_DRIVERS_UART_H

#include "firmware/hal/log.h"
#include "lib/util.h"

struct uart {
    uintptr_t base;
};

/* 115200 bit/s, 8 data bits, no parity, FIFOs on, no interrupts. */
void uart_init(struct uart *uart, uintptr_t base);

/* As many of the `len` bytes as fit now. @return how many that was */
size_t uart_write(const struct uart *uart, const char *text, size_t len);

/* Wait until the last bit of everything written is out. */
void uart_drain(const struct uart *uart);

/* The UART as the log's sink; `uart` must outlive the log. */
struct log_sink uart_log_sink(struct uart *uart);

/* From now on: an interrupt while there is a received character. */
void uart_irq_enable(const struct uart *uart);

/* One received character. @return false when there is none */
MUST_USE bool uart_read(const struct uart *uart, char *c);

#endif
