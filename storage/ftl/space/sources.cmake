# SPDX-License-Identifier: BSD-2-Clause
set(SOURCES
    ftl_dies.c
    ftl_due.c
    ftl_erase.c
    ftl_findings.c
    ftl_health.c
    ftl_planes.c
    ftl_reclaim.c
    ftl_superblock.c
    ftl_wear.c
)
