# SPDX-License-Identifier: BSD-2-Clause
set(SOURCES
    area.c
    config.c
    event_parts.c
    identity.c
    image.c
    slot_record.c
)
set(RV64_SOURCES
    boot_count.c
    error_log.c
    event_log.c
    records.c
    store.c
    usage.c
)
