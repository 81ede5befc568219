# SPDX-License-Identifier: BSD-2-Clause
# What the firmware is linked with besides its own sources: names of the part()
# lines in firmware/rv64/CMakeLists.txt.
set(ESSD_APP_PARTS layers drivers_port drivers_rnic drivers_media net_wire net_stack
    net_cm nvmeof_wire nvmeof_rdma nvmeof_target)
