/* SPDX-License-Identifier: BSD-2-Clause */
/* Numbers that a user types. */
#ifndef ESSD_TEXT_NUMBER_TEXT_H
#define ESSD_TEXT_NUMBER_TEXT_H

#include "lib/util.h"

/**
 * Parse digits, and nothing else.
 *
 * @param len   of the text, which need not end there
 * @param base  10 or 16
 * @return false when these are not one or more digits, or the number is greater
 *         than `max`
 */
MUST_USE bool number_text_parse(const char *text, size_t len, uint32_t base,
                                uint32_t max, uint32_t *value);

#endif
