# SPDX-License-Identifier: BSD-2-Clause
set(SOURCES
    compare.c
    copy.c
    fused.c
    io.c
    io_check.c
    lba_status.c
    lba_status_log.c
    order.c
    patience.c
    protection.c
    scratch.c
    uncorrectable.c
)
