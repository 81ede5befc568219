/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The configuration of Mbed TLS in QEMU: AES-GCM only, with the instructions of
 * this computer for it where it has them.
 */
#ifndef ESSD_QEMU_MBEDTLS_CONFIG_H
#define ESSD_QEMU_MBEDTLS_CONFIG_H

#define MBEDTLS_AESNI_C
#define MBEDTLS_AES_C
#define MBEDTLS_AES_ROM_TABLES
#define MBEDTLS_GCM_C
#define MBEDTLS_HAVE_ASM

#endif
