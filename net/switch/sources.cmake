# SPDX-License-Identifier: BSD-2-Clause
set(NATIVE_SOURCES
    fdb.c
    forward.c
    rx_lane.c
    shaper.c
    switch.c
    tx_lane.c
    vlan.c
)
