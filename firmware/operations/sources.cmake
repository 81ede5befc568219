# SPDX-License-Identifier: BSD-2-Clause
set(SOURCES
    sanitize.c
    sanitize_record.c
    self_test.c
    self_test_record.c
)
