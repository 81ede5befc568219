/* SPDX-License-Identifier: BSD-2-Clause */
#include "firmware/text/number_text.h"

/* @return the value of a digit, 16 when it is not one */
static uint32_t digit_value(char c)
{
    if (c >= '0' && c <= '9') {
        return (uint32_t)(c - '0');
    }
    if (c >= 'a' && c <= 'f') {
        return (uint32_t)(c - 'a') + 10;
    }
    return c >= 'A' && c <= 'F' ? (uint32_t)(c - 'A') + 10 : 16;
}

bool number_text_parse(const char *text, size_t len, uint32_t base,
                       uint32_t max, uint32_t *value)
{
    uint64_t number = 0;

    for (size_t i = 0; i < len; i++) {
        uint32_t digit = digit_value(text[i]);

        number = number * base + digit;
        if (digit >= base || number > max) {
            return false;
        }
    }
    *value = (uint32_t)number;
    return len != 0;
}
