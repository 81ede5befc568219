/* SPDX-License-Identifier: BSD-2-Clause */
/* Secrets of DH-HMAC-CHAP that tests give to a host and to the drive, in the
 * form of `nvme gen-dhchap-key`.  Their bytes count up from 0. */
#ifndef ESSD_TESTS_AUTH_SECRETS_H
#define ESSD_TESTS_AUTH_SECRETS_H

/* 32 bytes that go with SHA-256. */
#define SECRET "DHHC-1:01:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh+KfiaR:"
/* The same bytes, which go with any hash: another key. */
#define OTHER_SECRET                                                           \
    "DHHC-1:00:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh+KfiaR:"
/* 48 bytes that go with SHA-384: the drive's. */
#define DRIVE_SECRET                                                           \
    "DHHC-1:02:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8gISIjJCUmJygpKissLS" \
    "4vcSEgBQ==:"

#endif
