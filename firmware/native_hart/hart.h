/* SPDX-License-Identifier: BSD-2-Clause */
/* What the sources of this directory have in common. */
#ifndef ESSD_NATIVE_HART_H
#define ESSD_NATIVE_HART_H

#include "hw-model/core/native_hart.h"

/* The machine's operations. */
extern const struct native_hart_ops *native_ops;

/* Report that the processor does not go on, and reset the drive: see
 * struct native_hart_image. */
__attribute__((noreturn)) void native_trap(uint64_t mcause, uint64_t pc,
                                           uint64_t value);

/* The same for an access to an address where no register is. */
__attribute__((noreturn)) void native_fault(uintptr_t addr, bool is_write,
                                            const void *caller);

#endif
