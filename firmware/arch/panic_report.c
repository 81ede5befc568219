/* SPDX-License-Identifier: BSD-2-Clause */
/* See panic_report.h.  These functions use nothing of the program's state. */
#include "firmware/arch/panic_report.h"

#include "firmware/arch/arch.h"
#include "firmware/drivers/uart.h"
#include "hw-model/regs/soc.h"

void panic_print(const char *text, size_t len)
{
    struct uart uart = {.base = SOC_UART_BASE};

    while (len > 0) {
        size_t sent = uart_write(&uart, text, len);

        text += sent;
        len -= sent;
    }
    uart_drain(&uart);
}

void panic_reset(const struct sysctl_panic *panic)
{
    struct sysctl sysctl = {.base = SOC_SYSCTL_BASE};

    sysctl_store_panic(&sysctl, panic);
    sysctl_reset(&sysctl, SYSCTL_RESET_PANIC);
    arch_stop();
}
