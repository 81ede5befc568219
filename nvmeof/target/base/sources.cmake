# SPDX-License-Identifier: BSD-2-Clause
set(SOURCES
    abilities.c
    block_bytes.c
    clock.c
    ctrl_find.c
    error_log.c
    host_number.c
    latency.c
    level.c
    ns_find.c
    ns_formats.c
    reservation_check.c
    sanitize_rules.c
    smart.c
    stage.c
    wheel.c
)
