/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * CRC-32C, reflected polynomial 82F63B78h (Castagnoli): the digests of NVMe/TCP
 * and the check of NVMe-MI messages.
 * Spec: RFC 3720 appendix B.4.
 */
#ifndef ESSD_LIB_CRC32C_H
#define ESSD_LIB_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/**
 * Continue a CRC-32C over `len` more bytes.
 *
 * @param crc  0 to start, or what the previous call returned
 * @return the CRC of everything so far, as it is sent (little-endian)
 */
uint32_t crc32c_update(uint32_t crc, const void *data, size_t len);

#endif
