# SPDX-License-Identifier: BSD-2-Clause
set(SOURCES
    hw_port.c
    hw_port_mdio.c
    hw_port_pause.c
    hw_port_rx.c
    hw_port_timeout.c
    hw_port_tx.c
    port_fec.c
    port_phy.c
)
