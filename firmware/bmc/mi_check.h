/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The two checks of management messages: the Packet Error Code of SMBus (CRC-8,
 * System Management Bus 2.0 section 5.4) and the Message Integrity Check of
 * NVMe-MI (CRC-32C, NVM Express Management Interface 1.1 section 3.1.1.1).
 */
#ifndef ESSD_BMC_MI_CHECK_H
#define ESSD_BMC_MI_CHECK_H

#include "lib/util.h"

/** Continue a PEC, which begins with 0, over more bytes. */
uint8_t mi_pec(uint8_t pec, const uint8_t *bytes, size_t len);

uint32_t mi_crc32c(const uint8_t *bytes, size_t len);

#endif
