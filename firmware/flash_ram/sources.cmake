# SPDX-License-Identifier: BSD-2-Clause
set(NATIVE_SOURCES
    flash_ram.c
)
