/* SPDX-License-Identifier: BSD-2-Clause */
/* Bytes of tests, written as hexadecimal digits. */
#ifndef ESSD_TESTS_UNIT_TLS_HEX_H
#define ESSD_TESTS_UNIT_TLS_HEX_H

#include <stdio.h>
#include <string.h>

#include "lib/util.h"

/** @return how many bytes the digits stand for */
static inline size_t hex_to(uint8_t *bytes, const char *digits)
{
    size_t len = strlen(digits) / 2;

    for (size_t i = 0; i < len; i++) {
        unsigned int byte = 0;

        (void)sscanf(digits + 2 * i, "%2x", &byte);
        bytes[i] = (uint8_t)byte;
    }
    return len;
}

#endif
