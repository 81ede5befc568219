/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The primes of the Diffie-Hellman groups ffdhe2048 to ffdhe8192.
 * Spec: RFC 7919 appendix A; the generator is 2 in all of them.
 */
#ifndef ESSD_CRYPTO_DH_GROUPS_H
#define ESSD_CRYPTO_DH_GROUPS_H

#include "nvmeof/auth/auth_wire.h"

/** @return the prime, auth_dh_len(dh) bytes, big-endian; NULL for the null
 *          group */
const uint8_t *dh_group_prime(enum auth_dh dh);

#endif
