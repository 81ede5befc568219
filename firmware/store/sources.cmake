# SPDX-License-Identifier: BSD-2-Clause
set(SOURCES
    config.c
    event_parts.c
    identity.c
    image.c
)
set(RV64_SOURCES
    area.c
    boot_count.c
    error_log.c
    event_log.c
    records.c
    store.c
    usage.c
)
