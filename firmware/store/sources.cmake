# SPDX-License-Identifier: BSD-2-Clause
set(SOURCES
    config.c
    identity.c
    image.c
)
set(RV64_SOURCES
    area.c
    boot_count.c
    error_log.c
    records.c
    store.c
    usage.c
)
