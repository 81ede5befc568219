# SPDX-License-Identifier: BSD-2-Clause
set(RV64_SOURCES
    hart.c
    libc.c
    panic.c
)
