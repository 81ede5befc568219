# SPDX-License-Identifier: BSD-2-Clause
set(SOURCES
    admin.c
    firmware.c
    sanitize.c
    self_test.c
)
