# SPDX-License-Identifier: BSD-2-Clause
set(SOURCES
    command_sets.c
    hooks.c
    target.c
)
