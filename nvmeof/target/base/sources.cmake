# SPDX-License-Identifier: BSD-2-Clause
set(SOURCES
    abilities.c
    clock.c
    host_number.c
    latency.c
    level.c
    wheel.c
)
