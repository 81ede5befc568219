# SPDX-License-Identifier: BSD-2-Clause
set(SOURCES
    boot_slots.c
)
set(RV64_SOURCES
    main.c
    nmi.S
)
