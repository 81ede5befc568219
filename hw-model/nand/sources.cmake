# SPDX-License-Identifier: BSD-2-Clause
set(SOURCES
    nand_array.c
    nand_errors.c
    nand_file.c
    nand_inject.c
    nand_op.c
    nand_op_change.c
    nand_op_check.c
    nand_op_lookup.c
    nand_op_read.c
    nand_profile.c
    nand_ram.c
)
