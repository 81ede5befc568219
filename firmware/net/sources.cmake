# SPDX-License-Identifier: BSD-2-Clause
set(SOURCES
    attachment.c
    drive_address.c
    drive_lag.c
    drive_net.c
    lag_text.c
    node_filters.c
    node_paths.c
    node_ports.c
)
