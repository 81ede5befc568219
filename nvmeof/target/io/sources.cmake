# SPDX-License-Identifier: BSD-2-Clause
set(SOURCES
    compare.c
    copy.c
    fused.c
    io.c
    lba_list.c
    lba_status.c
    order.c
    protection.c
    scratch.c
    uncorrectable.c
)
