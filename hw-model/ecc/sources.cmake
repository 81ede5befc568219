# SPDX-License-Identifier: BSD-2-Clause
set(SOURCES
    hw_ecc.c
)
