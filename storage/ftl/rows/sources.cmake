# SPDX-License-Identifier: BSD-2-Clause
set(SOURCES
    ftl_damage.c
    ftl_marker.c
    ftl_parity.c
    ftl_rescue.c
    ftl_rescue_sum.c
    ftl_rescue_trace.c
    ftl_row.c
    ftl_row_fill.c
    ftl_stream.c
)
