# SPDX-License-Identifier: BSD-2-Clause
set(SOURCES
    error_log.c
    identify.c
    latency_record.c
    lba_status_log.c
    log.c
    log_endurance.c
    log_ocp.c
    log_support.c
    log_telemetry.c
    smart.c
)
