# SPDX-License-Identifier: BSD-2-Clause
set(SOURCES
    ftl_layout.c
    ftl_levelling.c
    ftl_policies.c
    ftl_space.c
    ftl_system_row.c
    ftl_trace.c
    ftl_victim_cost_benefit.c
    ftl_victim_greedy.c
)
