/* SPDX-License-Identifier: BSD-2-Clause */
#include "firmware/crypto/x25519.h"

#include <crypto_scalarmult_curve25519.h>

_Static_assert(X25519_LEN == crypto_scalarmult_curve25519_BYTES &&
                   X25519_LEN == crypto_scalarmult_curve25519_SCALARBYTES,
               "points and scalars have as many bytes as those of libsodium");

bool x25519_multiply(const uint8_t *scalar, const uint8_t *point,
                     uint8_t *result)
{
    int error = point != NULL
                    ? crypto_scalarmult_curve25519(result, scalar, point)
                    : crypto_scalarmult_curve25519_base(result, scalar);

    return error == 0;
}
