# SPDX-License-Identifier: BSD-2-Clause
set(SOURCES
    signature.c
    sodium_parts.c
)
