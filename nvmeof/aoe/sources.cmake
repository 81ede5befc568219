# SPDX-License-Identifier: BSD-2-Clause
set(SOURCES
    aoe.c
    aoe_ata.c
    aoe_binding.c
    aoe_config.c
    aoe_device.c
    aoe_host.c
    aoe_identify.c
    aoe_peers.c
    aoe_trace.c
    aoe_wire.c
)
