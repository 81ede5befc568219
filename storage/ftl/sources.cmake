# SPDX-License-Identifier: BSD-2-Clause
set(SOURCES
    ftl.c
    ftl_ask.c
    ftl_look.c
    ftl_start.c
    ftl_wipe.c
)
