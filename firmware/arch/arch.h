/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Functions that need a RISC-V hart.  All other firmware also compiles for the
 * machine on which it is developed.
 */
#ifndef ESSD_ARCH_ARCH_H
#define ESSD_ARCH_ARCH_H

#include "lib/util.h"

/* The program. crt0 calls it on hart 0, with a stack and zeroed data. */
void arch_main(uint64_t hart);

/* Start the program at `entry` on this hart, as a reset would. */
__attribute__((noreturn)) void arch_start(uintptr_t entry, uint64_t hart);

/* Sleep until a reset. */
__attribute__((noreturn)) void arch_stop(void);

/*
 * The build ID that the linker has written into the image: 20 bytes, a hash of
 * the image's content.  The boot ROM's image has none.
 */
const uint8_t *arch_build_id(void);

/* The stack of the program. */
uintptr_t arch_stack_bottom(void);
uintptr_t arch_stack_top(void);

/*
 * Let non-maskable interrupts come: from now on the watchdog's first expiry
 * makes a crash dump instead of nothing.
 */
void arch_enable_nmi(void);

/* The end of the image, its data and its stack: DRAM is free from here on. */
uint8_t *arch_free_memory(void);

#endif
