# SPDX-License-Identifier: BSD-2-Clause
set(SOURCES
    block_bytes.c
    compare.c
    copy.c
    fused.c
    io.c
    io_check.c
    lba_list.c
    lba_status.c
    order.c
    protection.c
    scratch.c
    uncorrectable.c
)
