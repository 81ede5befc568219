# SPDX-License-Identifier: BSD-2-Clause
set(SOURCES
    crash.c
    dram.c
    log.c
    log_format.c
)
set(RV64_SOURCES
    dma.c
    mmio.c
    relax.c
)
