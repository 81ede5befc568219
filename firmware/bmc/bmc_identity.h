/* SPDX-License-Identifier: BSD-2-Clause */
/* What the drive's serial number becomes at the interface of a BMC. */
#ifndef ESSD_BMC_BMC_IDENTITY_H
#define ESSD_BMC_BMC_IDENTITY_H

#include "firmware/bmc/mctp_control.h"
#include "firmware/bmc/mi.h"

/** Make a UUID (version 8 of RFC 9562) from the drive's serial number. */
void bmc_identity_uuid(uint8_t uuid[MCTP_UUID_LEN], const char *serial);

/** Pad the serial number with spaces, or cut it; `padded` gets no NUL. */
void bmc_identity_serial(char padded[MI_SERIAL_LEN], const char *serial);

#endif
