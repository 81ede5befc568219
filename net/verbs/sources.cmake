# SPDX-License-Identifier: BSD-2-Clause
set(SOURCES
    done.c
    objects.c
    rings.c
    work.c
)
