# SPDX-License-Identifier: BSD-2-Clause
set(SOURCES
    connect_log.c
    hw_errors.c
    nand_rules.c
    transfer_errors.c
)
