/* SPDX-License-Identifier: BSD-2-Clause */
#include "firmware/hal/relax.h"

void hal_relax(void)
{
    /* The device works by itself; only keep the compiler reading memory. */
    __asm__ volatile("" ::: "memory");
}
