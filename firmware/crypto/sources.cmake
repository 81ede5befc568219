# SPDX-License-Identifier: BSD-2-Clause
set(SOURCES
    aead.c
    crypto.c
    dh_groups.c
    dh_power.c
    x25519.c
)
