/* SPDX-License-Identifier: BSD-2-Clause */
/* Reference: the 16550's register set; docs/hardware/soc.md, section 1. */
#include "firmware/drivers/uart.h"

#include "firmware/hal/mmio.h"
#include "hw-model/regs/soc.h"

enum {               /* byte registers */
       UART_RBR = 0, /* read: received byte */
       UART_THR = 0, /* write: byte to send */
       UART_IER = 1,
       UART_FCR = 2,
       UART_LCR = 3,
       UART_MCR = 4,
       UART_LSR = 5,
       UART_DLL = 0, /* while LCR_DLAB is set */
       UART_DLM = 1,

       IER_RECEIVED = 0x01,
       FCR_ENABLE = 0x01,
       FCR_CLEAR = 0x06,
       LCR_8N1 = 0x03,
       LCR_DLAB = 0x80,
       LSR_DATA_READY = 0x01,
       LSR_THR_EMPTY = 0x20, /* with FIFOs: all 16 places are free */
       LSR_IDLE = 0x40,

       UART_FIFO_BYTES = 16,
       UART_BAUD = 115200,
       UART_DIVISOR = SOC_UART_CLOCK_HZ / 16 / UART_BAUD,
};

static bool has_status(const struct uart *uart, uint8_t bit)
{
    return (mmio_read8(uart->base + UART_LSR) & bit) != 0;
}

void uart_init(struct uart *uart, uintptr_t base)
{
    uart->base = base;
    mmio_write8(base + UART_IER, 0);
    mmio_write8(base + UART_LCR, LCR_DLAB | LCR_8N1);
    mmio_write8(base + UART_DLL, UART_DIVISOR);
    mmio_write8(base + UART_DLM, 0);
    mmio_write8(base + UART_LCR, LCR_8N1);
    mmio_write8(base + UART_FCR, FCR_ENABLE | FCR_CLEAR);
    mmio_write8(base + UART_MCR, 0);
}

size_t uart_write(const struct uart *uart, const char *text, size_t len)
{
    size_t sent = 0;

    while (sent < len && has_status(uart, LSR_THR_EMPTY)) {
        size_t burst = MIN(len - sent, (size_t)UART_FIFO_BYTES);

        for (size_t i = 0; i < burst; i++) {
            mmio_write8(uart->base + UART_THR, (uint8_t)text[sent + i]);
        }
        sent += burst;
    }
    return sent;
}

void uart_drain(const struct uart *uart)
{
    while (!has_status(uart, LSR_IDLE)) {
    }
}

void uart_irq_enable(const struct uart *uart)
{
    mmio_write8(uart->base + UART_IER, IER_RECEIVED);
}

bool uart_read(const struct uart *uart, char *c)
{
    if (!has_status(uart, LSR_DATA_READY)) {
        return false;
    }
    *c = (char)mmio_read8(uart->base + UART_RBR);
    return true;
}

static size_t sink_write(void *ctx, const char *text, size_t len)
{
    return uart_write(ctx, text, len);
}

static void sink_drain(void *ctx)
{
    uart_drain(ctx);
}

struct log_sink uart_log_sink(struct uart *uart)
{
    return (struct log_sink){uart, sink_write, sink_drain};
}
