/* SPDX-License-Identifier: BSD-2-Clause */
#include "firmware/bmc/mi_check.h"

enum { PEC_POLYNOMIAL = 0x07 };
#define CRC32C_POLYNOMIAL 0x82f63b78u /* bits reversed */

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
    uint32_t crc = UINT32_MAX;

    for (size_t i = 0; i < len; i++) {
        crc ^= bytes[i];
        for (unsigned int bit = 0; bit < 8; bit++) {
            crc = crc >> 1 ^ (crc & 1 ? CRC32C_POLYNOMIAL : 0);
        }
    }
    return ~crc;
}
