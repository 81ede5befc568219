# SPDX-License-Identifier: BSD-2-Clause
set(SOURCES
    dev_queue.c
    ram_queue.c
    sparse_bytes.c
)
