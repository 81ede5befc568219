# SPDX-License-Identifier: BSD-2-Clause
set(SOURCES
    reservations.c
    reservations_record.c
    volume.c
    volume_record.c
    volume_table.c
)
