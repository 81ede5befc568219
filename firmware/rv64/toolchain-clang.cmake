# SPDX-License-Identifier: BSD-2-Clause
# clang only checks: it compiles everything and links nothing.  It never makes
# unaligned accesses for this target, so there is no -mstrict-align.
set(CMAKE_SYSTEM_NAME Generic)
set(CMAKE_SYSTEM_PROCESSOR riscv64)
set(CMAKE_C_COMPILER clang)
set(CMAKE_ASM_COMPILER clang)
set(CMAKE_C_COMPILER_TARGET riscv64-unknown-elf)
set(CMAKE_ASM_COMPILER_TARGET riscv64-unknown-elf)
set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)
set(ESSD_COMPILE_ONLY ON)
set(ESSD_RV64_FLAGS
    -isystem /usr/lib/picolibc/riscv64-unknown-elf/include)
