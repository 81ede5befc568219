# SPDX-License-Identifier: BSD-2-Clause
set(SOURCES
    auth.c
    auth_key.c
    auth_wire.c
)
