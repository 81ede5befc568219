/* SPDX-License-Identifier: BSD-2-Clause */
/* What lwIP needs of the compiler and of its user. */
#ifndef ESSD_TESTS_LWIP_CC_H
#define ESSD_TESTS_LWIP_CC_H

#include <stdlib.h>

#define LWIP_PLATFORM_ASSERT(text) abort()
#define LWIP_RAND()                0x12345678u /* the same in each run */

#endif
