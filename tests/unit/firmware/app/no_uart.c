/* SPDX-License-Identifier: BSD-2-Clause */
/* What log.c needs of the board, for programs that only want its formatter. */
#include <stdlib.h>

#include "firmware/drivers/uart.h"
#include "firmware/hal/time.h"

uint64_t hal_now_us(void)
{
    abort();
}

size_t uart_write(const struct uart *uart, const char *text, size_t len)
{
    (void)uart;
    (void)text;
    (void)len;
    abort();
}

void uart_drain(const struct uart *uart)
{
    (void)uart;
    abort();
}
