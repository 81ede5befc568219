/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Vital Product Data: what a BMC reads to learn what kind of drive this is.
 * Spec: NVM Express Management Interface 1.1 section 9.2; IPMI Platform
 * Management FRU Information Storage Definition 1.0.
 *
 * Left out: internal use, chassis and board areas; the PCIe port record, since
 * the drive has no PCIe; power figures, which the data sheet does not give.
 */
#ifndef ESSD_BMC_VPD_H
#define ESSD_BMC_VPD_H

#include "lib/util.h"

enum { VPD_LEN = 256 };

struct vpd {
    const char *manufacturer; /* each at most 40 characters */
    const char *product;
    const char *part;
    const char *version;
    const char *serial;
    uint64_t capacity_bytes;
};

/** @param buf  VPD_LEN bytes, all written */
void vpd_emit(uint8_t *buf, const struct vpd *vpd);

#endif
