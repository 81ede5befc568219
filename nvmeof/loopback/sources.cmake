# SPDX-License-Identifier: BSD-2-Clause
set(SOURCES
    loopback.c
    loopback_host.c
)
