# SPDX-License-Identifier: BSD-2-Clause
set(SOURCES
    ip_text.c
    lldp_log.c
    neighbour_text.c
    number_text.c
)
