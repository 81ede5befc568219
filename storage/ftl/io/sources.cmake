# SPDX-License-Identifier: BSD-2-Clause
set(SOURCES
    ftl_io.c
    ftl_io_expects.c
    ftl_protect.c
    ftl_short_read.c
    ftl_whole_units.c
)
