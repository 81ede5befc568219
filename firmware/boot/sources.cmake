# SPDX-License-Identifier: BSD-2-Clause
set(RV64_SOURCES
    main.c
    nmi.S
)
