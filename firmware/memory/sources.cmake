# SPDX-License-Identifier: BSD-2-Clause
set(SOURCES
    memory_check.c
)
