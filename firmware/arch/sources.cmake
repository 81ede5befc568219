# SPDX-License-Identifier: BSD-2-Clause
set(RV64_SOURCES
    hal.c
    image.c
    panic_report.c
    memory.c
    panic.c
    crt0.S
)
