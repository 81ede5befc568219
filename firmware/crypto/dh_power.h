/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Exponentiation modulo a prime in bounded slices.
 *
 * An exponentiation of ffdhe8192 takes seconds on an emulated CPU.  So it is
 * done a few Montgomery multiplications at a time, between which the main loop
 * serves I/O, timers and the watchdog.  The multiplications are those of Mbed
 * TLS.  The sequence of operations and the memory that they access do not
 * depend on the exponent.
 *
 * Method: windows of 4 bits, a table of 16 powers (HAC 14.82), Montgomery
 * representation (HAC 14.36).
 */
#ifndef ESSD_CRYPTO_DH_POWER_H
#define ESSD_CRYPTO_DH_POWER_H

#include "nvmeof/auth/auth_wire.h"

enum {
    DH_LIMBS = AUTH_DH_MAX / 8,
    DH_WINDOW_BITS = 4,
    DH_TABLE = 1 << DH_WINDOW_BITS,
};

enum dh_phase {
    DH_IDLE,     /* Has no work; waits for dh_power_start(). */
    DH_SQUARE_R, /* Computes R^2, which converts numbers to Montgomery form. */
    DH_FILL,     /* Computes the table of powers of the base. */
    DH_RAISE,    /* Squares and multiplies, window by window. */
    DH_CONVERT,  /* Converts the result from Montgomery form. */
    DH_DONE,     /* Waits for dh_power_result(). */
    DH_PHASES
};

/* Treat as opaque.  Limbs are the least significant first. */
struct dh_power {
    uint8_t phase; /* enum dh_phase */
    uint8_t dh;    /* enum auth_dh */
    uint16_t step; /* operations of this phase that are done */
    uint64_t mm;   /* Montgomery constant of the prime */
    uint8_t exponent[AUTH_EXPONENT_MAX];
    uint64_t prime[DH_LIMBS];
    uint64_t value[DH_LIMBS]; /* what the phase computes */
    uint64_t base[DH_LIMBS];
    uint64_t chosen[DH_LIMBS];
    uint64_t table[DH_TABLE * DH_LIMBS]; /* entries as long as the prime */
    uint64_t scratch[2 * DH_LIMBS + 2];
};

/** Start an exponentiation; one that was under way is dropped.
 * @param base  NULL for the generator */
void dh_power_start(struct dh_power *power, enum auth_dh dh,
                    const uint8_t *base, const uint8_t *exponent);

/** Do the next multiplication.  @return true when the result is ready */
bool dh_power_step(struct dh_power *power);

/** Get the result, auth_dh_len(dh) bytes, and wipe everything secret. */
void dh_power_result(struct dh_power *power, uint8_t *result);

/** Whether a value is in 2..p-2. */
bool dh_power_accepts(enum auth_dh dh, const uint8_t *value);

#endif
