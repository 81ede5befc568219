# SPDX-License-Identifier: BSD-2-Clause
set(SOURCES
    countdown.c
    dev_queue.c
    ram_queue.c
    sparse_bytes.c
)
