# SPDX-License-Identifier: BSD-2-Clause
set(SOURCES
    echo.c
    echo_wire.c
)
