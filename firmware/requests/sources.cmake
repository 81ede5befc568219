# SPDX-License-Identifier: BSD-2-Clause
set(SOURCES
    fault_request.c
)
