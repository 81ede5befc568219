# SPDX-License-Identifier: BSD-2-Clause
set(SOURCES
    ftl_layout.c
    ftl_level_never.c
    ftl_level_spread.c
    ftl_policies.c
    ftl_space.c
    ftl_streams_by_cause.c
    ftl_streams_by_source.c
    ftl_system_row.c
    ftl_trace.c
    ftl_victim_cost_benefit.c
    ftl_victim_greedy.c
)
