# SPDX-License-Identifier: BSD-2-Clause
set(SOURCES
    module_limits.c
    module_record.c
    module_report.c
    modules.c
    sensors.c
)
