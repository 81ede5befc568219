/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The configuration of Mbed TLS: only hash functions, AES-GCM, and arithmetic
 * of large numbers.  The tables of AES are constants.  Nothing of it allocates
 * memory in the functions that the drive calls.
 */
#ifndef ESSD_CRYPTO_MBEDTLS_CONFIG_H
#define ESSD_CRYPTO_MBEDTLS_CONFIG_H

#define MBEDTLS_AES_C
#define MBEDTLS_AES_ROM_TABLES
#define MBEDTLS_BIGNUM_C
#define MBEDTLS_GCM_C
#define MBEDTLS_SHA256_C
#define MBEDTLS_SHA384_C
#define MBEDTLS_SHA512_C

#endif
