/* SPDX-License-Identifier: BSD-2-Clause */
/* Helpers that every part of the project uses.  Freestanding. */
#ifndef ESSD_LIB_UTIL_H
#define ESSD_LIB_UTIL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MUST_USE     __attribute__((warn_unused_result))
#define BIT(n)       (1u << (n))
#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))
#define MIN(a, b)    ((a) < (b) ? (a) : (b))
#define MAX(a, b)    ((a) > (b) ? (a) : (b))
#define IS_POW2(n)   ((n) != 0 && ((n) & ((n) - 1)) == 0)

#define container_of(ptr, type, member)                                        \
    ((type *)(void *)((char *)(ptr) - offsetof(type, member)))

/**
 * Report a broken invariant and stop.  Firmware prints on the UART, records the
 * reason and lets the watchdog reset the machine; native programs and the QEMU
 * models call abort().
 *
 * Each program links its own version.
 */
__attribute__((noreturn)) void assert_failed(const char *expression,
                                             const char *file, int line);

/*
 * Checks for our own errors only.  Nothing that a peer sends may fail an
 * ASSERT.
 */
#define ASSERT(e) ((e) ? (void)0 : assert_failed(#e, __FILE__, __LINE__))

#endif
