# SPDX-License-Identifier: BSD-2-Clause
set(SOURCES
    feature.c
    latency_monitor.c
)
