/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The words the register lists of hw-model/regs/ are written in, for device
 * cores: A_REG is a register's offset, R_REG_FIELD_MASK and _SHIFT a field.
 * Include this before a register list.
 */
#ifndef ESSD_HW_CORE_REGFIELDS_H
#define ESSD_HW_CORE_REGFIELDS_H

#include <stdint.h>

/* clang-format off */
#define REG32(reg, addr) enum { A_##reg = (addr) };
#define FIELD(reg, field, shift, length)                                       \
    enum {                                                                     \
        R_##reg##_##field##_SHIFT = (shift),                                   \
        R_##reg##_##field##_LENGTH = (length),                                 \
    };                                                                         \
    static const uint32_t R_##reg##_##field##_MASK __attribute__((unused)) =   \
        (uint32_t)((~UINT64_C(0) >> (64 - (length))) << (shift));

/* Read one field out of a register's value. */
#define FIELD_GET(value, reg, field)                                           \
    (((uint32_t)(value) & R_##reg##_##field##_MASK) >>                         \
     R_##reg##_##field##_SHIFT)

/* A register's value that has one field set. */
#define FIELD_MAKE(reg, field, v)                                              \
    (((uint32_t)(v) << R_##reg##_##field##_SHIFT) & R_##reg##_##field##_MASK)
/* clang-format on */

#endif
