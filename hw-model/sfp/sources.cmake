# SPDX-License-Identifier: BSD-2-Clause
set(SOURCES
    sfp_module.c
)
