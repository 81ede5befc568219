# SPDX-License-Identifier: BSD-2-Clause
set(SOURCES
    services.c
)
