# SPDX-License-Identifier: BSD-2-Clause
set(SOURCES
    bmc.c
    mctp.c
    mctp_control.c
    mi.c
    mi_check.c
    vpd.c
)
