# SPDX-License-Identifier: BSD-2-Clause
set(SOURCES
    ftl_checkpoint_load.c
    ftl_mount.c
    ftl_mount_clear.c
    ftl_mount_pages.c
    ftl_mount_probe.c
    ftl_mount_repair.c
    ftl_mount_scan.c
)
