# SPDX-License-Identifier: BSD-2-Clause
set(SOURCES
    config_check.c
    config_text.c
    config_value.c
    settings.c
)
set(RV64_SOURCES
    config_flash.c
)
