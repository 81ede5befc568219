/* SPDX-License-Identifier: BSD-2-Clause */
/* What the sources of this directory have in common. */
#ifndef ESSD_NATIVE_HART_H
#define ESSD_NATIVE_HART_H

#include "hw-model/core/native_hart.h"

/* The machine's operations. */
extern const struct native_hart_ops *native_ops;

/* An access to an address where nothing is: report it and reset the drive. */
__attribute__((noreturn)) void native_fault(uintptr_t addr, bool is_write,
                                            const void *caller);

#endif
