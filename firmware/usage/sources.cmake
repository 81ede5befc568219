# SPDX-License-Identifier: BSD-2-Clause
set(SOURCES
    event_keeper.c
    hw_log.c
    latency_keeper.c
    share_keeper.c
    usage_keeper.c
)
