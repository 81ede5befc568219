# SPDX-License-Identifier: BSD-2-Clause
set(SOURCES
    ftl_keep.c
    ftl_map.c
    ftl_marks.c
    ftl_memory.c
    ftl_slot.c
    ftl_slot_row.c
    ftl_trace_units.c
    ftl_victim.c
    ftl_waiting.c
)
