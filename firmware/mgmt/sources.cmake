# SPDX-License-Identifier: BSD-2-Clause
set(SOURCES
    json_read.c
    json_write.c
    mgmt_service.c
)
