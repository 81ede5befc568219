# SPDX-License-Identifier: BSD-2-Clause
set(SOURCES
    objects.c
    rings.c
    work.c
)
