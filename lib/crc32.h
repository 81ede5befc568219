/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * CRC-32, reflected polynomial EDB88320h: Ethernet's FCS, RoCE's ICRC, zlib.
 *
 * Native programs link crc32_native.c (libdeflate, vectorised), firmware
 * links crc32_small.c.  Both give the same values.
 */
#ifndef ESSD_LIB_CRC32_H
#define ESSD_LIB_CRC32_H

#include <stddef.h>
#include <stdint.h>

/**
 * Continue a CRC-32 over `len` more bytes, zlib's convention.
 *
 * @param crc  0 to start, or what the previous call returned
 * @return the CRC of everything so far, complemented at both ends as zlib does
 */
uint32_t crc32_update(uint32_t crc, const void *data, size_t len);

#endif
