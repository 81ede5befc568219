# SPDX-License-Identifier: BSD-2-Clause
set(SOURCES
    feature.c
    latency_monitor.c
    latency_record.c
    timestamp.c
)
