# SPDX-License-Identifier: BSD-2-Clause
set(SOURCES
    tls_hello.c
    tls_key_log.c
    tls_keys.c
    tls_psk.c
    tls_record.c
    tls_server.c
)
