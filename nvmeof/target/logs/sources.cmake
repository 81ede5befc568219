# SPDX-License-Identifier: BSD-2-Clause
set(SOURCES
    identify.c
    log.c
    log_endurance.c
    log_ocp.c
    log_support.c
    log_telemetry.c
)
