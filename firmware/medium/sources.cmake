# SPDX-License-Identifier: BSD-2-Clause
set(SOURCES
    media_seam.c
    nand_health.c
    nand_medium.c
    nand_seam.c
    nand_sizes.c
    nand_stage.c
)
