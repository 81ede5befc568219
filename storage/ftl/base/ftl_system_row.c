/* SPDX-License-Identifier: BSD-2-Clause */
#include "storage/ftl/base/ftl_system_row.h"

static uint8_t check_of(uint32_t number)
{
    const struct ftl_system system = {.kind = FTL_KIND_DATA, .number = number};
    uint8_t buf[FTL_UNIT_SYSTEM];

    ftl_system_emit(&system, buf);
    return buf[FTL_UNIT_SYSTEM - 1];
}

void ftl_system_sums_init(struct ftl_system_sums *sums)
{
    uint8_t zero = check_of(0);
    uint8_t sum[FTL_UNIT_SYSTEM] = {0};

    /* A check byte is linear in the bytes before it, apart from a constant.  In
     * a sum of an even number of units the constants cancel; in an odd one, one
     * is left. */
    ftl_system_mark_parity(sum);
    sums->of_sum[0] = sum[FTL_UNIT_SYSTEM - 1];
    ftl_system_mark_data(sum);
    sums->of_sum[1] = sum[FTL_UNIT_SYSTEM - 1];
    ftl_system_mark_parity(sum);
    sums->of_sum[1] ^= sum[FTL_UNIT_SYSTEM - 1];

    for (unsigned int byte = 0; byte < ARRAY_LEN(sums->changes); byte++) {
        uint8_t *changes = sums->changes[byte];

        changes[0] = 0;
        for (uint32_t value = 1; value < 256; value++) {
            uint32_t rest = value & (value - 1); /* without its lowest bit */

            changes[value] =
                rest != 0 ? (uint8_t)(changes[rest] ^ changes[value ^ rest])
                          : (uint8_t)(check_of(value << 8 * byte) ^ zero);
        }
    }
}
