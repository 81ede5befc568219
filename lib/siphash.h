/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * SipHash-2-4 (Aumasson and Bernstein, 2012): a hash with a secret key.  Who
 * does not know the key can neither predict a hash nor find two inputs with the
 * same one, unlike with a CRC, which is linear.
 */
#ifndef ESSD_LIB_SIPHASH_H
#define ESSD_LIB_SIPHASH_H

#include "lib/util.h"

enum { SIPHASH_KEY_LEN = 16 };

uint64_t siphash(const uint8_t key[SIPHASH_KEY_LEN], const void *data,
                 size_t len);

#endif
