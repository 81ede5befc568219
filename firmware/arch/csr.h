/* SPDX-License-Identifier: BSD-2-Clause */
/* Control and status registers.  Spec: RISC-V Privileged 20211203 chapter 3. */
#ifndef ESSD_ARCH_CSR_H
#define ESSD_ARCH_CSR_H

#include <stdint.h>

#define MIE_SOFTWARE (1u << 3)
#define MIE_TIMER    (1u << 7)
#define MIE_EXTERNAL (1u << 11)

#define csr_read(name)                                                         \
    __extension__({                                                            \
        uint64_t value_;                                                       \
        __asm__ volatile("csrr %0, " #name : "=r"(value_));                    \
        value_;                                                                \
    })

#define csr_write(name, value)                                                 \
    __asm__ volatile("csrw " #name ", %0"                                      \
                     :                                                         \
                     : "r"((uint64_t)(value))                                  \
                     : "memor"                                                 \
                       "y")

#endif
