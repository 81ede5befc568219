# SPDX-License-Identifier: BSD-2-Clause
set(SOURCES
    command.c
    rnic.c
    streams.c
)
