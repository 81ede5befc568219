/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * CRC-32 for native programs and the device models: libdeflate, which uses
 * carry-less multiplication where the processor has it.
 */
#include "lib/crc32.h"

#include <libdeflate.h>

uint32_t crc32_update(uint32_t crc, const void *data, size_t len)
{
    return libdeflate_crc32(crc, data, len);
}
