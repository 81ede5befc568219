/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What happens when the program fails: print the reason on the console, keep a
 * record in sysctl's scratch words, and reset, as firmware/arch/panic.c does.
 * There is no crash dump, since its readers know the drive's own hart only.
 */
#include "firmware/native_hart/hart.h"

#include <string.h>

#include "firmware/arch/panic_report.h"
#include "firmware/drivers/sysctl.h"
#include "firmware/hal/log.h"
#include "lib/util.h"

#define MCAUSE_LOAD_FAULT  5
#define MCAUSE_STORE_FAULT 7

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
    len = log_format(text, sizeof(text),
                     "\r\npanic: %s:%d: assertion failed: %s, called from "
                     "0x%lx\r\n",
                     file, line, expression, panic.mepc);
    panic_print(text, len);
    panic_reset(&panic);
}

void native_trap(uint64_t mcause, uint64_t pc, uint64_t value)
{
    struct sysctl_panic panic = {
        .is_trap = true,
        .mcause = mcause,
        .mepc = pc,
        .mtval = value,
    };
    char text[128];
    size_t len = log_format(text, sizeof(text),
                            "\r\npanic: trap %lu at 0x%lx, value 0x%lx\r\n",
                            panic.mcause, panic.mepc, panic.mtval);

    panic_print(text, len);
    panic_reset(&panic);
}

void native_fault(uintptr_t addr, bool is_write, const void *caller)
{
    native_trap(is_write ? MCAUSE_STORE_FAULT : MCAUSE_LOAD_FAULT,
                (uintptr_t)caller, addr);
}
