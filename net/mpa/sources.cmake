# SPDX-License-Identifier: BSD-2-Clause
set(SOURCES
    fpdu.c
    setup.c
)
