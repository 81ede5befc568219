# SPDX-License-Identifier: BSD-2-Clause
set(RV64_SOURCES
    hart.c
    libc.c
    panic.c
    # They are the same for every kind of hart.
    ../arch/image.c
    ../arch/panic_report.c
)
