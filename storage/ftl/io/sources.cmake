# SPDX-License-Identifier: BSD-2-Clause
set(SOURCES
    ftl_io.c
    ftl_io_read.c
    ftl_io_write.c
    ftl_op_end.c
    ftl_protect.c
    ftl_short_read.c
    ftl_whole_units.c
)
