# SPDX-License-Identifier: BSD-2-Clause
set(SOURCES
    modules.c
    sensors.c
)
