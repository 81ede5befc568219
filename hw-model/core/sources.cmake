# SPDX-License-Identifier: BSD-2-Clause
set(SOURCES
    ram_queue.c
)
