# SPDX-License-Identifier: BSD-2-Clause
set(SOURCES
    neighbour_log.c
    vendor_feature.c
)
