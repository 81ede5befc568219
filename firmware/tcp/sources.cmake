# SPDX-License-Identifier: BSD-2-Clause
set(SOURCES
    tcp_echo.c
)
