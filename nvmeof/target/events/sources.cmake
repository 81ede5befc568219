# SPDX-License-Identifier: BSD-2-Clause
set(SOURCES
    event.c
    event_limits.c
    persistent_event.c
)
