# SPDX-License-Identifier: BSD-2-Clause
set(SOURCES
    crc32c.c
    section.c
    siphash.c
    t10_pi.c
    trace.c
)
set(NATIVE_SOURCES
    assert_native.c
    crc32_native.c
)
set(RV64_SOURCES
    crc32_small.c
)
