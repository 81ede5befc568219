# SPDX-License-Identifier: BSD-2-Clause
set(SOURCES
    addresses.c
    components.c
    console.c
    console_config.c
    drive.c
    lag_text.c
    media_seam.c
    neighbour_log.c
    pools_text.c
    services.c
    vendor_feature.c
)
set(RV64_SOURCES
    board.c
    main.c
)
