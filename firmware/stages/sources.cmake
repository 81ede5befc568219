# SPDX-License-Identifier: BSD-2-Clause
set(SOURCES
    stage_relay.c
    stages.c
)
