/* SPDX-License-Identifier: BSD-2-Clause */
#include "firmware/bmc/bmc_identity.h"

#include <string.h>

#include "lib/util.h"

void bmc_identity_uuid(uint8_t uuid[MCTP_UUID_LEN], const char *serial)
{
    memset(uuid, 0, MCTP_UUID_LEN);
    for (size_t i = 0; serial[i] != '\0'; i++) {
        uuid[i % MCTP_UUID_LEN] =
            (uint8_t)(uuid[i % MCTP_UUID_LEN] * 31 + serial[i]);
    }
    uuid[6] = (uint8_t)(0x80 | (uuid[6] & 0x0f));
    uuid[8] = (uint8_t)(0x80 | (uuid[8] & 0x3f));
}

void bmc_identity_serial(char padded[MI_SERIAL_LEN], const char *serial)
{
    memset(padded, ' ', MI_SERIAL_LEN);
    memcpy(padded, serial, MIN(strlen(serial), (size_t)MI_SERIAL_LEN));
}
