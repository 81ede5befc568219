/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Protection information of a block: 8 bytes with a CRC of the data (guard) and
 * two tags.
 * Spec: NVM Express NVM Command Set 1.0 section 5.2; T10 SBC.
 */
#ifndef ESSD_LIB_T10_PI_H
#define ESSD_LIB_T10_PI_H

#include "lib/util.h"

enum {
    T10_PI_LEN = 8,
    T10_APP_TAG_ESCAPE = 0xffff,
};
#define T10_REF_TAG_ESCAPE UINT32_MAX

struct t10_pi {
    uint16_t guard;
    uint16_t app_tag;
    uint32_t ref_tag;
};

/** Continue a guard over `len` more bytes.  The guard of no data is 0. */
uint16_t t10_crc_update(uint16_t crc, const uint8_t *data, size_t len);

void t10_pi_parse(struct t10_pi *pi, const uint8_t buf[T10_PI_LEN]);
void t10_pi_emit(const struct t10_pi *pi, uint8_t buf[T10_PI_LEN]);

/** Whether the tags say that the block is not to be checked. */
bool t10_pi_is_escaped(const struct t10_pi *pi, unsigned int type);

#endif
