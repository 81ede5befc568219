/* SPDX-License-Identifier: BSD-2-Clause */
/* Overwrite secrets that are not needed any more. */
#ifndef ESSD_LIB_WIPE_H
#define ESSD_LIB_WIPE_H

#include <string.h>

/** Set bytes to 0 although nobody reads them again: the compiler must assume
 * that the empty statement after it does. */
static inline void wipe_bytes(void *ptr, size_t len)
{
    memset(ptr, 0, len);
    __asm__ volatile("" : : "r"(ptr) : "memory");
}

#endif
