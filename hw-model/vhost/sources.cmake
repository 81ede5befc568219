# SPDX-License-Identifier: BSD-2-Clause
set(SOURCES
    vhost_memory.c
    vhost_ring.c
    vhost_backend.c
)
set(NATIVE_SOURCES
    vhost_map.c
)
