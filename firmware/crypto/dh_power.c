/* SPDX-License-Identifier: BSD-2-Clause */
#include "firmware/crypto/dh_power.h"

#include <string.h>

#include "firmware/crypto/dh_groups.h"

#include "bignum_core.h"
#include "constant_time_internal.h"
#include "mbedtls/platform_util.h"

_Static_assert(sizeof(mbedtls_mpi_uint) == sizeof(uint64_t),
               "Mbed TLS has limbs of 64 bits");

/* Allowed transitions.  Every phase can be followed by a new start. */
static const uint8_t phase_next[DH_PHASES] = {
    [DH_IDLE] = BIT(DH_SQUARE_R), [DH_SQUARE_R] = BIT(DH_FILL),
    [DH_FILL] = BIT(DH_RAISE),    [DH_RAISE] = BIT(DH_CONVERT),
    [DH_CONVERT] = BIT(DH_DONE),  [DH_DONE] = BIT(DH_IDLE),
};

/* The only writer of power->phase. */
static void power_enter(struct dh_power *power, enum dh_phase next)
{
    ASSERT(phase_next[power->phase] & BIT(next));
    power->phase = (uint8_t)next;
    power->step = 0;
}

static size_t limbs_of(const struct dh_power *power)
{
    return auth_dh_len(power->dh) / sizeof(uint64_t);
}

static void multiply_numbers(struct dh_power *power, uint64_t *result,
                             const uint64_t *a, const uint64_t *b)
{
    size_t limbs = limbs_of(power);

    mbedtls_mpi_core_montmul(result, a, b, limbs, power->prime, limbs,
                             power->mm, power->scratch);
}

/* value = 2 * value mod p */
static void double_value(struct dh_power *power, uint64_t *value)
{
    size_t limbs = limbs_of(power);
    uint64_t carry = mbedtls_mpi_core_add(value, value, value, limbs);
    uint64_t borrow = mbedtls_mpi_core_sub(value, value, power->prime, limbs);

    /* The subtraction was one too many if it borrowed more than the carry. */
    (void)mbedtls_mpi_core_add_if(value, power->prime, limbs,
                                  (unsigned int)(borrow & (carry ^ 1)));
}

/* The number 1 in Montgomery form, R mod p, which is R - p: the highest bit of
 * these primes is set. */
static void set_one(const struct dh_power *power, uint64_t *value)
{
    size_t limbs = limbs_of(power);

    memset(value, 0, limbs * sizeof(*value));
    (void)mbedtls_mpi_core_sub(value, value, power->prime, limbs);
}

void dh_power_start(struct dh_power *power, enum auth_dh dh,
                    const uint8_t *base, const uint8_t *exponent)
{
    size_t len = auth_dh_len((uint8_t)dh);

    ASSERT(len != 0);
    mbedtls_platform_zeroize(power, sizeof(*power));
    power->dh = (uint8_t)dh;
    ASSERT(mbedtls_mpi_core_read_be(power->prime, limbs_of(power),
                                    dh_group_prime(dh), len) == 0);
    power->mm = mbedtls_mpi_core_montmul_init(power->prime);
    memcpy(power->exponent, exponent, auth_exponent_len((uint8_t)dh));
    if (base != NULL) {
        ASSERT(mbedtls_mpi_core_read_be(power->base, limbs_of(power), base,
                                        len) == 0);
    } else {
        power->base[0] = 2;
    }
    set_one(power, power->value);
    power_enter(power, DH_SQUARE_R);
}

/*
 * Compute R^2 mod p, which is 2^(bits of R) in Montgomery form: one squaring
 * for each bit of that exponent, and a doubling if the bit is set.
 */
static void step_square_r(struct dh_power *power)
{
    size_t exponent = limbs_of(power) * 64;
    unsigned int bits = 64 - (unsigned int)__builtin_clzll(exponent);

    multiply_numbers(power, power->value, power->value, power->value);
    if (exponent >> (bits - 1 - power->step) & 1) {
        double_value(power, power->value);
    }
    power->step++;
    if (power->step == bits) {
        power_enter(power, DH_FILL);
    }
}

/* Compute one entry of the table: base^step. */
static void step_fill(struct dh_power *power)
{
    size_t limbs = limbs_of(power);
    uint64_t *row = power->table + power->step * limbs;

    if (power->step == 0) {
        set_one(power, row);
    } else if (power->step == 1) {
        multiply_numbers(power, row, power->base, power->value);
    } else {
        multiply_numbers(power, row, row - limbs, power->table + limbs);
    }
    power->step++;
    if (power->step == DH_TABLE) {
        set_one(power, power->value);
        power_enter(power, DH_RAISE);
    }
}

/* Copy an entry of the table without a trace of which one it was: every entry
 * is read. */
static void choose_entry(struct dh_power *power, unsigned int index)
{
    size_t limbs = limbs_of(power);

    for (unsigned int i = 0; i < DH_TABLE; i++) {
        mbedtls_mpi_core_cond_assign(power->chosen, power->table + i * limbs,
                                     limbs, mbedtls_ct_uint_eq(i, index));
    }
}

/* Each window takes four squarings, then one multiplication by the entry of the
 * table that its bits select. */
static void step_raise(struct dh_power *power)
{
    unsigned int window = power->step / (DH_WINDOW_BITS + 1);
    unsigned int windows = 2u * auth_exponent_len(power->dh);
    uint8_t bits = power->exponent[window / 2];

    if (power->step % (DH_WINDOW_BITS + 1) < DH_WINDOW_BITS) {
        multiply_numbers(power, power->value, power->value, power->value);
    } else {
        bits = window % 2 == 0 ? bits >> 4 : bits & 0xf;
        choose_entry(power, bits);
        multiply_numbers(power, power->value, power->value, power->chosen);
    }
    power->step++;
    if (power->step == windows * (DH_WINDOW_BITS + 1)) {
        power_enter(power, DH_CONVERT);
    }
}

static void step_convert(struct dh_power *power)
{
    memset(power->chosen, 0, sizeof(power->chosen));
    power->chosen[0] = 1;
    multiply_numbers(power, power->value, power->value, power->chosen);
    power_enter(power, DH_DONE);
}

bool dh_power_step(struct dh_power *power)
{
    switch ((enum dh_phase)power->phase) {
    case DH_SQUARE_R:
        step_square_r(power);
        break;
    case DH_FILL:
        step_fill(power);
        break;
    case DH_RAISE:
        step_raise(power);
        break;
    case DH_CONVERT:
        step_convert(power);
        break;
    case DH_IDLE:
    case DH_DONE:
    case DH_PHASES:
        break;
    }
    return power->phase == DH_DONE;
}

void dh_power_result(struct dh_power *power, uint8_t *result)
{
    ASSERT(power->phase == DH_DONE);
    ASSERT(mbedtls_mpi_core_write_be(power->value, limbs_of(power), result,
                                     auth_dh_len(power->dh)) == 0);
    mbedtls_platform_zeroize(power, sizeof(*power));
}

bool dh_power_accepts(enum auth_dh dh, const uint8_t *value)
{
    const uint8_t *prime = dh_group_prime(dh);
    size_t last = auth_dh_len((uint8_t)dh) - 1u;
    bool is_small = true; /* no byte but the last differs from zero */
    int order;

    for (size_t i = 0; i < last; i++) {
        is_small &= value[i] == 0;
    }
    if (is_small && value[last] < 2) {
        return false;
    }
    /* The primes are odd, so p - 1 differs from p in the last byte only. */
    order = memcmp(value, prime, last);
    return order < 0 || (order == 0 && value[last] < prime[last] - 1);
}
