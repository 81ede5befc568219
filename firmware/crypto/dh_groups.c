/* SPDX-License-Identifier: BSD-2-Clause */
#include "firmware/crypto/dh_groups.h"

#include "mbedtls/dhm.h"

static const uint8_t ffdhe2048[] = MBEDTLS_DHM_RFC7919_FFDHE2048_P_BIN;
static const uint8_t ffdhe3072[] = MBEDTLS_DHM_RFC7919_FFDHE3072_P_BIN;
static const uint8_t ffdhe4096[] = MBEDTLS_DHM_RFC7919_FFDHE4096_P_BIN;
static const uint8_t ffdhe6144[] = MBEDTLS_DHM_RFC7919_FFDHE6144_P_BIN;
static const uint8_t ffdhe8192[] = MBEDTLS_DHM_RFC7919_FFDHE8192_P_BIN;
_Static_assert(sizeof(ffdhe8192) == AUTH_DH_MAX, "the longest value");

const uint8_t *dh_group_prime(enum auth_dh dh)
{
    static const uint8_t *const primes[AUTH_DHS] = {
        [AUTH_FFDHE2048] = ffdhe2048, [AUTH_FFDHE3072] = ffdhe3072,
        [AUTH_FFDHE4096] = ffdhe4096, [AUTH_FFDHE6144] = ffdhe6144,
        [AUTH_FFDHE8192] = ffdhe8192,
    };

    return primes[dh];
}
