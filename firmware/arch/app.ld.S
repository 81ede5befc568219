/* SPDX-License-Identifier: BSD-2-Clause */
/* The firmware: everything at the start of DRAM, where the boot ROM loads it. */
#include "hw-model/regs/soc.h"

OUTPUT_ARCH(riscv)
ENTRY(_start)

MEMORY
{
    dram (rwx) : ORIGIN = SOC_DRAM_BASE, LENGTH = 32M
}

SECTIONS
{
    .text : {
        KEEP(*(.text.start))
        *(.text .text.*)
    } > dram
    /* Part of the image, so that tools/essd/build/elf.py finds the ELF of an
     * image. */
    .note.gnu.build-id : ALIGN(4) {
        __build_id_note = .;
        KEEP(*(.note.gnu.build-id))
    } > dram
    .rodata : ALIGN(64) { *(.rodata .rodata.* .srodata .srodata.*) } > dram
    .data : ALIGN(64) {
        *(.data .data.*)
        PROVIDE(__global_pointer$ = . + 0x800);
        *(.sdata .sdata.*)
        . = ALIGN(8);
    } > dram
    /DISCARD/ : { *(.eh_frame .eh_frame.* .comment .note .note.*) }

    .bss (NOLOAD) : ALIGN(64) {
        __bss_start = .;
        *(.sbss .sbss.* .bss .bss.* COMMON)
        . = ALIGN(8);
        __bss_end = .;
    } > dram
    .stack (NOLOAD) : ALIGN(4096) {
        __stacks_start = .;
        . += 8192;
        __trap_stack_top = .;
        __stack_bottom = .;
        . += 131072;
        __stack_top = .;
        __stacks_end = .;
    } > dram
    __ram_start = __bss_start;
    __ram_end = __stack_top;
    __free_memory = ALIGN(4096);
}
