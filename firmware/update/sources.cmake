# SPDX-License-Identifier: BSD-2-Clause
set(SOURCES
    updater.c
    update_image.c
)
