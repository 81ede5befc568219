# SPDX-License-Identifier: BSD-2-Clause
set(SOURCES
    buf_pool.c
)
