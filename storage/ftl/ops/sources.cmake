# SPDX-License-Identifier: BSD-2-Clause
set(SOURCES
    ftl_hold.c
    ftl_request.c
    ftl_send.c
)
