# SPDX-License-Identifier: BSD-2-Clause
set(SOURCES
    self_test.c
    self_test_record.c
)
