# SPDX-License-Identifier: BSD-2-Clause
set(SOURCES
    bmc.c
    bmc_identity.c
    mctp.c
    mctp_control.c
    mi.c
    mi_check.c
    vpd.c
)
