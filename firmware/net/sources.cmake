# SPDX-License-Identifier: BSD-2-Clause
set(SOURCES
    drive_address.c
    drive_lag.c
    drive_net.c
)
