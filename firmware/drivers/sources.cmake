# SPDX-License-Identifier: BSD-2-Clause
set(SOURCES
    lag.c
    media.c
    port.c
    rnic.c
    rnic_cmd.c
    rnic_io.c
    uart.c
)
set(RV64_SOURCES
    flash.c
    gpio.c
    plic.c
    spi.c
    sysctl.c
    watchdog.c
)
