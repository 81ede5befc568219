/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What only a RISC-V hart can do.  Everything else of the firmware also
 * compiles for the machine it is developed on.
 */
#ifndef ESSD_ARCH_ARCH_H
#define ESSD_ARCH_ARCH_H

#include "lib/util.h"

/* The program: crt0 calls it on hart 0, with a stack and zeroed data. */
void arch_main(uint64_t hart);

/* Start the program at `entry` on this hart, as a reset would. */
__attribute__((noreturn)) void arch_start(uintptr_t entry, uint64_t hart);

/* Sleep for good. */
__attribute__((noreturn)) void arch_stop(void);

/* Where the image, its data and its stack end: DRAM from here on is free. */
uint8_t *arch_free_memory(void);

#endif
