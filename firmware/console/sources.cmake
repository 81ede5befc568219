# SPDX-License-Identifier: BSD-2-Clause
set(SOURCES
    console.c
    console_ana.c
    console_commands.c
    console_config.c
    console_hosts.c
    console_i2c.c
    console_phy.c
)
