/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The firmware for a native hart: everything at the start of DRAM, where the
 * machine loads it.  Device models run on the firmware's stack, too.
 */
#include "hw-model/regs/soc.h"

ENTRY(native_hart_image)

MEMORY
{
    dram (rwx) : ORIGIN = SOC_DRAM_BASE, LENGTH = 32M
}

SECTIONS
{
    .text : {
        KEEP(*(.image))
        *(.text .text.*)
    } > dram
    .note.gnu.build-id : ALIGN(4) {
        __build_id_note = .;
        KEEP(*(.note.gnu.build-id))
    } > dram
    .rodata : ALIGN(64) { *(.rodata .rodata.*) } > dram
    .data : ALIGN(64) {
        *(.data .data.*)
        *(.got .got.*)
        . = ALIGN(8);
    } > dram
    /DISCARD/ : { *(.eh_frame .eh_frame.* .comment .note .note.*) }

    .bss (NOLOAD) : ALIGN(64) {
        __zeroed_start = .;
        *(.bss .bss.* COMMON)
        . = ALIGN(8);
        __zeroed_end = .;
    } > dram
    /* Before the stack are pages without access, of which no function's frame
     * is as large; 64 KiB is the largest size of a page. */
    .stack (NOLOAD) : ALIGN(65536) {
        __guard_bottom = .;
        . += 65536;
        __stack_bottom = .;
        . += 1048576;
        __stack_top = .;
    } > dram
    __free_memory = ALIGN(4096);
}
