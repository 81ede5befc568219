# SPDX-License-Identifier: BSD-2-Clause
set(SOURCES
    host_list.c
    host_table.c
    tls_keys.c
)
set(RV64_SOURCES
    host_store.c
)
