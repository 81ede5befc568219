# SPDX-License-Identifier: BSD-2-Clause
set(SOURCES
    mpa_cm.c
    mpa_conn.c
)
