# SPDX-License-Identifier: BSD-2-Clause
set(SOURCES
    volume.c
    volume_record.c
    volume_table.c
)
