# SPDX-License-Identifier: BSD-2-Clause
set(SOURCES
    hw_watchdog.c
)
