# SPDX-License-Identifier: BSD-2-Clause
set(SOURCES
    host_number.c
    latency.c
    level.c
    wheel.c
)
