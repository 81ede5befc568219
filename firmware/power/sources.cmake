# SPDX-License-Identifier: BSD-2-Clause
set(SOURCES
    power.c
)
