/* SPDX-License-Identifier: BSD-2-Clause */
/* The end of a program that has failed, for every kind of hart. */
#ifndef ESSD_ARCH_PANIC_REPORT_H
#define ESSD_ARCH_PANIC_REPORT_H

#include <stddef.h>

#include "firmware/drivers/sysctl.h"

/* Print on the console, and wait until everything is printed. */
void panic_print(const char *text, size_t len);

/* Keep a record in sysctl's scratch words, and reset. */
__attribute__((noreturn)) void panic_reset(const struct sysctl_panic *panic);

#endif
