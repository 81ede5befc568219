# SPDX-License-Identifier: BSD-2-Clause
set(SOURCES
    usage_keeper.c
)
