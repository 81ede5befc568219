# SPDX-License-Identifier: BSD-2-Clause
set(SOURCES
    bmc.c
    mi.c
    mi_check.c
    vpd.c
)
