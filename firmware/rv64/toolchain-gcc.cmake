# SPDX-License-Identifier: BSD-2-Clause
# gcc-riscv64-unknown-elf with picolibc, as Debian packages them.
set(CMAKE_SYSTEM_NAME Generic)
set(CMAKE_SYSTEM_PROCESSOR riscv64)
set(CMAKE_C_COMPILER riscv64-unknown-elf-gcc)
set(CMAKE_ASM_COMPILER riscv64-unknown-elf-gcc)
set(CMAKE_OBJCOPY riscv64-unknown-elf-objcopy)
set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)
set(ESSD_RV64_FLAGS --specs=picolibc.specs -mstrict-align)
