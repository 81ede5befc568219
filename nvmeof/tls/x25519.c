/* SPDX-License-Identifier: BSD-2-Clause */
#include "nvmeof/tls/x25519.h"

#include <string.h>

#include "lib/bytes.h"
#include "lib/wipe.h"

enum {
    LIMB_BITS = 51,
    SCALAR_BITS = 255,
    BITS_A_STEP = 16,
    A24 = 121665, /* (486662 - 2) / 4 */
};

static const uint64_t limb_mask = (UINT64_C(1) << LIMB_BITS) - 1;

__extension__ typedef unsigned __int128 wide;

/* ---- Arithmetic modulo 2^255 - 19.  Results have limbs below 2^52. */

static void field_carry(struct x25519_field *out, const wide *sum)
{
    wide carry = 0;

    for (unsigned int i = 0; i < X25519_LIMBS; i++) {
        carry += sum[i];
        out->limb[i] = (uint64_t)carry & limb_mask;
        carry >>= LIMB_BITS;
    }
    /* 2^255 is 19. */
    carry = carry * 19 + out->limb[0];
    out->limb[0] = (uint64_t)carry & limb_mask;
    out->limb[1] += (uint64_t)(carry >> LIMB_BITS);
}

static struct x25519_field field_multiply(const struct x25519_field *a,
                                          const struct x25519_field *b)
{
    wide sum[X25519_LIMBS] = {0};
    struct x25519_field out;

    for (unsigned int i = 0; i < X25519_LIMBS; i++) {
        for (unsigned int j = 0; j < X25519_LIMBS; j++) {
            uint64_t factor = i + j < X25519_LIMBS ? 1 : 19;

            sum[(i + j) % X25519_LIMBS] +=
                (wide)a->limb[i] * (b->limb[j] * factor);
        }
    }
    field_carry(&out, sum);
    return out;
}

static struct x25519_field field_square(const struct x25519_field *a)
{
    return field_multiply(a, a);
}

static struct x25519_field field_add(const struct x25519_field *a,
                                     const struct x25519_field *b)
{
    struct x25519_field out;

    for (unsigned int i = 0; i < X25519_LIMBS; i++) {
        out.limb[i] = a->limb[i] + b->limb[i];
    }
    return out;
}

/* a - b + 4p, so that no limb is negative. */
static struct x25519_field field_subtract(const struct x25519_field *a,
                                          const struct x25519_field *b)
{
    wide sum[X25519_LIMBS];
    struct x25519_field out;

    for (unsigned int i = 0; i < X25519_LIMBS; i++) {
        uint64_t p = i == 0 ? limb_mask - 18 : limb_mask;

        sum[i] = (wide)(a->limb[i] + 4 * p - b->limb[i]);
    }
    field_carry(&out, sum);
    return out;
}

static struct x25519_field field_scale(const struct x25519_field *a,
                                       uint64_t factor)
{
    wide sum[X25519_LIMBS];
    struct x25519_field out;

    for (unsigned int i = 0; i < X25519_LIMBS; i++) {
        sum[i] = (wide)a->limb[i] * factor;
    }
    field_carry(&out, sum);
    return out;
}

static void field_swap(struct x25519_field *a, struct x25519_field *b,
                       uint64_t swap)
{
    uint64_t mask = 0 - swap;

    for (unsigned int i = 0; i < X25519_LIMBS; i++) {
        uint64_t difference = mask & (a->limb[i] ^ b->limb[i]);

        a->limb[i] ^= difference;
        b->limb[i] ^= difference;
    }
}

/* To the power of p - 2, whose bits are all 1 but bits 2 and 4. */
static struct x25519_field field_invert(const struct x25519_field *a)
{
    struct x25519_field out = *a;

    for (int bit = SCALAR_BITS - 2; bit >= 0; bit--) {
        out = field_square(&out);
        if (bit != 2 && bit != 4) {
            out = field_multiply(&out, a);
        }
    }
    return out;
}

static struct x25519_field field_parse(const uint8_t *bytes)
{
    struct x25519_field out;

    for (unsigned int i = 0; i < X25519_LIMBS; i++) {
        unsigned int bit = i * LIMB_BITS;
        uint64_t word = 0;

        /* The bits of a limb are in eight bytes. */
        for (unsigned int j = 0; j < 8; j++) {
            unsigned int at = bit / 8 + j;

            word |= at < X25519_LEN ? (uint64_t)bytes[at] << (8 * j) : 0;
        }
        out.limb[i] = (word >> (bit % 8)) & limb_mask;
    }
    return out;
}

/* The value below p. */
static void field_emit(const struct x25519_field *a, uint8_t *bytes)
{
    struct x25519_field value = *a;
    wide bits = 0;
    unsigned int count = 0;
    uint8_t at = 0;

    for (unsigned int round = 0; round < 2; round++) {
        wide sum[X25519_LIMBS];

        for (unsigned int i = 0; i < X25519_LIMBS; i++) {
            sum[i] = value.limb[i];
        }
        field_carry(&value, sum);
    }
    /* Add 19 and take the carry out of bit 255: it is 1 from p on. */
    uint64_t carry = 19;

    for (unsigned int i = 0; i < X25519_LIMBS; i++) {
        carry = (value.limb[i] + carry) >> LIMB_BITS;
    }
    carry *= 19;
    for (unsigned int i = 0; i < X25519_LIMBS; i++) {
        carry += value.limb[i];
        bits |= (wide)(carry & limb_mask) << count;
        carry >>= LIMB_BITS;
        for (count += LIMB_BITS; count >= 8; count -= 8) {
            bytes[at++] = (uint8_t)bits;
            bits >>= 8;
        }
    }
    bytes[at] = (uint8_t)bits;
}

/* ---- The ladder. */

void x25519_start(struct x25519 *work, const uint8_t *scalar,
                  const uint8_t *point)
{
    static const uint8_t base[X25519_LEN] = {9};

    memset(work, 0, sizeof(*work));
    memcpy(work->scalar, scalar, X25519_LEN);
    work->scalar[0] &= 248;
    work->scalar[31] &= 127;
    work->scalar[31] |= 64;
    work->x1 = field_parse(point != NULL ? point : base);
    work->x2.limb[0] = 1;
    work->x3 = work->x1;
    work->z3.limb[0] = 1;
    work->bit = SCALAR_BITS - 1;
}

/* The names are those of RFC 7748. */
static void ladder_bit(struct x25519 *work)
{
    uint64_t k = (work->scalar[work->bit / 8] >> (work->bit % 8)) & 1;
    struct x25519_field a, aa, b, bb, e, c, d, da, cb, t;

    work->swap ^= k;
    field_swap(&work->x2, &work->x3, work->swap);
    field_swap(&work->z2, &work->z3, work->swap);
    work->swap = k;
    a = field_add(&work->x2, &work->z2);
    aa = field_square(&a);
    b = field_subtract(&work->x2, &work->z2);
    bb = field_square(&b);
    e = field_subtract(&aa, &bb);
    c = field_add(&work->x3, &work->z3);
    d = field_subtract(&work->x3, &work->z3);
    da = field_multiply(&d, &a);
    cb = field_multiply(&c, &b);
    t = field_add(&da, &cb);
    work->x3 = field_square(&t);
    t = field_subtract(&da, &cb);
    t = field_square(&t);
    work->z3 = field_multiply(&work->x1, &t);
    work->x2 = field_multiply(&aa, &bb);
    t = field_scale(&e, A24);
    t = field_add(&aa, &t);
    work->z2 = field_multiply(&e, &t);
    work->bit--;
}

bool x25519_step(struct x25519 *work)
{
    for (unsigned int i = 0; i < BITS_A_STEP && work->bit >= 0; i++) {
        ladder_bit(work);
    }
    return work->bit < 0;
}

bool x25519_result(struct x25519 *work, uint8_t *result)
{
    struct x25519_field x, z;
    uint8_t any = 0;

    ASSERT(work->bit < 0);
    field_swap(&work->x2, &work->x3, work->swap);
    field_swap(&work->z2, &work->z3, work->swap);
    z = field_invert(&work->z2);
    x = field_multiply(&work->x2, &z);
    field_emit(&x, result);
    wipe_bytes(work, sizeof(*work));
    for (unsigned int i = 0; i < X25519_LEN; i++) {
        any |= result[i];
    }
    return any != 0;
}
