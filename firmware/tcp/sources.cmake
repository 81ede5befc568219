# SPDX-License-Identifier: BSD-2-Clause
set(SOURCES
    nvme_socket.c
    tcp_echo.c
)
