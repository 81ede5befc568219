/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The words the register lists of hw-model/regs/ are written in, with the
 * names QEMU's hw/registerfields.h gives: A_REG, R_REG_FIELD_SHIFT and so on.
 * Include this before a register list.
 */
#ifndef ESSD_HAL_REGFIELDS_H
#define ESSD_HAL_REGFIELDS_H

#include <stdint.h>

/* clang-format off */
#define REG32(reg, addr)                                                       \
    enum { A_##reg = (addr) };                                                 \
    enum { R_##reg = (addr) / 4 };
#define REG64(reg, addr)                                                       \
    enum { A_##reg = (addr) };                                                 \
    enum { R_##reg = (addr) / 8 };
#define FIELD(reg, field, shift, length)                                       \
    enum { R_##reg##_##field##_SHIFT = (shift) };                              \
    enum { R_##reg##_##field##_LENGTH = (length) };                            \
    static const uint64_t R_##reg##_##field##_MASK                             \
        __attribute__((unused)) = (~0ull >> (64 - (length))) << (shift);

/* Read one field out of a register's value. */
#define FIELD_GET(value, reg, field)                                           \
    (((uint64_t)(value) & R_##reg##_##field##_MASK) >>                         \
     R_##reg##_##field##_SHIFT)

/* The register's value with one field replaced. */
#define FIELD_SET(value, reg, field, v)                                        \
    (((uint64_t)(value) & ~R_##reg##_##field##_MASK) |                         \
     (((uint64_t)(v) << R_##reg##_##field##_SHIFT) &                           \
      R_##reg##_##field##_MASK))

/* The same for 32-bit registers, without a cast at every use. */
#define FIELD_GET32(value, reg, field)                                         \
    ((uint32_t)FIELD_GET(value, reg, field))
#define FIELD_SET32(value, reg, field, v)                                      \
    ((uint32_t)FIELD_SET(value, reg, field, v))
/* clang-format on */

#endif
