# SPDX-License-Identifier: BSD-2-Clause
set(SOURCES
    ftl.c
    ftl_collect.c
    ftl_health.c
    ftl_io.c
    ftl_layout.c
    ftl_map.c
    ftl_mount.c
    ftl_parity.c
    ftl_request.c
    ftl_rescue.c
    ftl_row.c
    ftl_slot.c
    ftl_superblock.c
    ftl_trim.c
    ftl_wear.c
)
