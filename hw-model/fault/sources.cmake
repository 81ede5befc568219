# SPDX-License-Identifier: BSD-2-Clause
set(SOURCES
    fault_match.c
    fault_media.c
    fault_nand.c
    fault_rule.c
    fault_wire.c
)
