/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The macros in which the register lists of hw-model/regs/ are written, for
 * drivers, device cores and tests.  They define the same names as QEMU's
 * hw/registerfields.h: A_REG is a register's offset, R_REG its index;
 * R_REG_FIELD_SHIFT, _LENGTH and _MASK describe a field.  All registers have 32
 * bits.
 *
 * Include this before a register list.
 */
#ifndef ESSD_LIB_REGFIELDS_H
#define ESSD_LIB_REGFIELDS_H

#include <stdint.h>

/* clang-format off */
#define REG32(reg, addr)                                                       \
    enum {                                                                     \
        A_##reg = (addr),                                                      \
        R_##reg = (addr) / 4,                                                  \
    };
#define FIELD(reg, field, shift, length)                                       \
    enum {                                                                     \
        R_##reg##_##field##_SHIFT = (shift),                                   \
        R_##reg##_##field##_LENGTH = (length),                                 \
    };                                                                         \
    static const uint32_t R_##reg##_##field##_MASK __attribute__((unused)) =   \
        (uint32_t)((~UINT64_C(0) >> (64 - (length))) << (shift));

/* Read one field of a register's value. */
#define FIELD_GET(value, reg, field)                                           \
    (((uint32_t)(value) & R_##reg##_##field##_MASK) >>                         \
     R_##reg##_##field##_SHIFT)

/* Make a register value with one field set and all others zero. */
#define FIELD_MAKE(reg, field, v)                                              \
    (((uint32_t)(v) << R_##reg##_##field##_SHIFT) & R_##reg##_##field##_MASK)

/* Replace one field in a register's value. */
#define FIELD_SET(value, reg, field, v)                                        \
    (((uint32_t)(value) & ~R_##reg##_##field##_MASK) |                         \
     FIELD_MAKE(reg, field, v))
/* clang-format on */

#endif
