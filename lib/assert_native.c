/* SPDX-License-Identifier: BSD-2-Clause */
/* assert_failed() for native programs: prints the expression and aborts. */
#include "lib/util.h"

#include <stdio.h>
#include <stdlib.h>

void assert_failed(const char *expression, const char *file, int line)
{
    fprintf(stderr, "%s:%d: assertion failed: %s\n", file, line, expression);
    abort();
}
