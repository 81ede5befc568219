# SPDX-License-Identifier: BSD-2-Clause
set(SOURCES
    updater.c
    update_check.c
    update_image.c
    update_slots.c
    update_write.c
)
