# SPDX-License-Identifier: BSD-2-Clause
set(SOURCES
    hw_mgmt.c
    hw_mgmt_regs.c
    hw_mgmt_trace.c
)
