# SPDX-License-Identifier: BSD-2-Clause
set(SOURCES
    host.c
    host_conn.c
    host_queue.c
)
