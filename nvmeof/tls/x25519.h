/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * X25519 in slices: between two of them the main loop serves I/O and timers.
 *
 * The operations and the memory that they access do not depend on the scalar.
 * Spec: RFC 7748 section 5.
 */
#ifndef ESSD_NVMEOF_TLS_X25519_H
#define ESSD_NVMEOF_TLS_X25519_H

#include "lib/util.h"

enum {
    X25519_LEN = 32,
    X25519_LIMBS = 5, /* of 51 bits, the least significant first */
};

struct x25519_field {
    uint64_t limb[X25519_LIMBS];
};

/* Treat as opaque. */
struct x25519 {
    uint8_t scalar[X25519_LEN];
    struct x25519_field x1, x2, z2, x3, z3; /* as in RFC 7748 */
    uint64_t swap;                          /* 0 or 1 */
    int16_t bit;                            /* the next one; -1: done */
};

/** Start a multiplication.
 * @param scalar  X25519_LEN bytes, copied; the function clamps them
 * @param point   X25519_LEN bytes, copied; NULL for the base point */
void x25519_start(struct x25519 *work, const uint8_t *scalar,
                  const uint8_t *point);

/** Do a bounded part of the work.  @return true when it is done */
bool x25519_step(struct x25519 *work);

/** Get the result, X25519_LEN bytes, and wipe everything secret.
 * @return false when it is 0: the point was of small order */
MUST_USE bool x25519_result(struct x25519 *work, uint8_t *result);

#endif
