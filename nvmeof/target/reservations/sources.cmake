# SPDX-License-Identifier: BSD-2-Clause
set(SOURCES
    reservation_command.c
    reservation_notice.c
)
