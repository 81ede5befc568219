/* SPDX-License-Identifier: BSD-2-Clause */
#include "firmware/hal/relax.h"

void hal_relax(void)
{
    /*
     * The device works on its own.  This only makes the compiler read memory
     * again.
     */
    __asm__ volatile("" ::: "memory");
}
