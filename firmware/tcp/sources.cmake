# SPDX-License-Identifier: BSD-2-Clause
set(SOURCES
    mpa_socket.c
    nvme_socket.c
    tcp_echo.c
    tcp_engine.c
    tls_conn.c
    tls_engine.c
    tls_shake.c
    tls_socket.c
    tls_update.c
)
