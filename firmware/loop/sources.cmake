# SPDX-License-Identifier: BSD-2-Clause
set(SOURCES
    loop.c
)
set(RV64_SOURCES
    watchdog_keeper.c
)
