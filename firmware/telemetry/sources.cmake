# SPDX-License-Identifier: BSD-2-Clause
set(SOURCES
    crash_store.c
    telemetry.c
)
