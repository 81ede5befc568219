# SPDX-License-Identifier: BSD-2-Clause
set(SOURCES
    backend_ram.c
    hw_media.c
    hw_media_command.c
    hw_media_destage.c
    hw_media_op.c
    hw_media_overlap.c
    hw_media_trace.c
    media_cache.c
)
