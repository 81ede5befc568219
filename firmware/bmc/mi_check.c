/* SPDX-License-Identifier: BSD-2-Clause */
#include "firmware/bmc/mi_check.h"

#include "lib/crc32c.h"

enum { PEC_POLYNOMIAL = 0x07 };

uint8_t mi_pec(uint8_t pec, const uint8_t *bytes, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        pec ^= bytes[i];
        for (unsigned int bit = 0; bit < 8; bit++) {
            pec = (uint8_t)(pec << 1 ^ (pec & 0x80 ? PEC_POLYNOMIAL : 0));
        }
    }
    return pec;
}

uint32_t mi_crc32c(const uint8_t *bytes, size_t len)
{
    return crc32c_update(0, bytes, len);
}
