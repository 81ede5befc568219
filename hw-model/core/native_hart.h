/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The seam between the machine and firmware that is built for the computer on
 * which the machine is emulated (-M essd,hart=native).
 *
 * The firmware is a flat image.  It is loaded to SOC_DRAM_BASE, where it begins
 * with a struct native_hart_image, and runs in the thread of hart 0.  There,
 * DRAM has the same addresses as on the drive's bus, so that pointers and DMA
 * addresses are the same numbers.  Everything else of the bus is reached
 * through struct native_hart_ops.
 *
 * The firmware leaves the processor only in these functions.  A reset does not
 * return from them: the image is then loaded and started anew.
 */
#ifndef ESSD_HW_NATIVE_HART_H
#define ESSD_HW_NATIVE_HART_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NATIVE_HART_MAGIC UINT64_C(0x7472616864737365) /* "essdhart" */

/* Changes with everything below. */
enum { NATIVE_HART_VERSION = 2 };

struct native_hart_ops {
    void *ctx; /* first argument of those that have one */

    /* One access of 1, 4 or 8 bytes to a register.
     * @return false for an address where nothing is */
    bool (*read)(void *ctx, uint64_t addr, unsigned int size, uint64_t *value);
    bool (*write)(void *ctx, uint64_t addr, unsigned int size, uint64_t value);
    /* The machine timer, SOC_TIMEBASE_HZ. */
    uint64_t (*ticks)(void *ctx);
    /* Called in loops that wait for a device. */
    void (*relax)(void *ctx);
    /* Choose the interrupts that end a wait, as the register mie does. */
    void (*set_enabled)(void *ctx, uint64_t mie);
    /* Wait for an interrupt, as the instruction wfi does. */
    void (*wait)(void *ctx);

    /* The C library's, for memory. */
    void *(*copy)(void *to, const void *from, size_t len);
    void *(*move)(void *to, const void *from, size_t len);
    void *(*fill)(void *to, int value, size_t len);
    int (*compare)(const void *a, const void *b, size_t len);
};

/* The beginning of the image.  Addresses are those of the bus. */
struct native_hart_image {
    uint64_t magic;
    uint32_t version;
    uint32_t ops_bytes; /* sizeof(struct native_hart_ops) */
    /* Nothing may access what is between `guard_bottom` and the stack, so that
     * a stack that is too small is noticed.  Whole pages. */
    uint64_t guard_bottom;
    uint64_t stack_bottom, stack_top;
    /* Called with that stack; does not return. */
    void (*start)(const struct native_hart_ops *ops);
    /* The processor cannot execute the instruction at `pc`: called with the
     * whole stack, which is forgotten; does not return.
     * @param mcause  as of a RISC-V hart
     * @param value   the address of the access, if it is known */
    void (*trap)(uint64_t mcause, uint64_t pc, uint64_t value);
};

#endif
