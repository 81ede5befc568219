/* SPDX-License-Identifier: BSD-2-Clause */
/* The firmware on its SoC: one context, one loop. */
#include "firmware/app/drive.h"
#include "firmware/arch/arch.h"
#include "firmware/hal/time.h"
#include "firmware/hal/wait.h"
#include "hw-model/regs/soc.h"

static struct drive drive; /* main's only: everything else is handed it */

void arch_main(uint64_t hart)
{
    struct sysctl sysctl;
    uint8_t *free_memory = arch_free_memory();
    uintptr_t dram_end;

    (void)hart;
    ASSERT(sysctl_init(&sysctl, SOC_SYSCTL_BASE));
    dram_end = SOC_DRAM_BASE + sysctl_dram_bytes(&sysctl);
    hal_wait_init();
    drive_init(&drive, free_memory, dram_end - (uintptr_t)free_memory);
    for (;;) {
        uint64_t deadline_us = drive_step(&drive);

        if (deadline_us > hal_now_us()) {
            hal_wait_until(deadline_us);
        }
    }
}
