/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What happens when the program fails: print the reason on the console, keep a
 * record in sysctl's scratch words, and reset.  This uses none of the program's
 * state.
 */
#include "firmware/arch/arch.h"
#include "firmware/arch/csr.h"
#include "firmware/drivers/sysctl.h"
#include "firmware/drivers/uart.h"
#include "firmware/hal/log.h"
#include "hw-model/regs/soc.h"

#include <string.h>

#define REGISTERS 32

void trap_panic(const uint64_t *x);

static void print_text(const char *text, size_t len)
{
    struct uart uart = {.base = SOC_UART_BASE};

    while (len > 0) {
        size_t sent = uart_write(&uart, text, len);

        text += sent;
        len -= sent;
    }
    uart_drain(&uart);
}

__attribute__((noreturn)) static void reset_machine(
    const struct sysctl_panic *panic)
{
    struct sysctl sysctl = {.base = SOC_SYSCTL_BASE};

    sysctl_store_panic(&sysctl, panic);
    sysctl_reset(&sysctl, SYSCTL_RESET_PANIC);
    arch_stop();
}

void assert_failed(const char *expression, const char *file, int line)
{
    struct sysctl_panic panic = {
        .line = (uint32_t)line,
        .mepc = (uintptr_t)__builtin_return_address(0),
    };
    size_t len = strlen(file);
    size_t keep = MIN(len, sizeof(panic.file) - 1);
    char text[256];

    memcpy(panic.file, file + len - keep, keep);
    len =
        log_format(text, sizeof(text),
                   "\r\npanic: %s:%d: assertion failed: %s, called from %p\r\n",
                   file, line, expression, __builtin_return_address(0));
    print_text(text, len);
    reset_machine(&panic);
}

/*
 * Called by trap_entry.
 * @param x  the 32 integer registers
 */
void trap_panic(const uint64_t *x)
{
    struct sysctl_panic panic = {
        .is_trap = true,
        .mcause = csr_read(mcause),
        .mepc = csr_read(mepc),
        .mtval = csr_read(mtval),
    };
    char text[128];
    size_t len;

    len = log_format(text, sizeof(text),
                     "\r\npanic: trap %lu at 0x%lx, value 0x%lx\r\n",
                     panic.mcause, panic.mepc, panic.mtval);
    print_text(text, len);
    for (unsigned int i = 1; i < REGISTERS; i++) {
        len = log_format(text, sizeof(text), "x%02u %016lx%s", i, x[i],
                         i % 4 == 3 ? "\r\n" : "  ");
        print_text(text, len);
    }
    reset_machine(&panic);
}
