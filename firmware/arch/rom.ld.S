/* SPDX-License-Identifier: BSD-2-Clause */
/* The boot ROM: code and constants in ROM, the rest in SRAM. */
#include "hw-model/regs/soc.h"

OUTPUT_ARCH(riscv)
ENTRY(_start)

MEMORY
{
    rom (rx) : ORIGIN = SOC_ROM_BASE, LENGTH = SOC_ROM_SIZE
    sram (rw) : ORIGIN = SOC_SRAM_BASE, LENGTH = SOC_SRAM_SIZE
}

SECTIONS
{
    .text : {
        KEEP(*(.text.start))
        . = SOC_NMI_VECTOR - SOC_ROM_BASE;
        KEEP(*(.text.nmi))
        *(.text .text.*)
        *(.rodata .rodata.* .srodata .srodata.*)
    } > rom
    /* Only in the ELF: QEMU is built again when the ROM's bytes change, and a
     * build ID changes with every line number. */
    .note.gnu.build-id 0 (INFO) : { KEEP(*(.note.gnu.build-id)) }
    /DISCARD/ : { *(.eh_frame .eh_frame.* .comment .note .note.*) }

    /* No code copies initial values, so there must be none. */
    .data : { *(.data .data.* .sdata .sdata.*) } > sram
    ASSERT(SIZEOF(.data) == 0, "the boot ROM has initialised data")
    PROVIDE(__global_pointer$ = ORIGIN(sram) + 0x800);

    .bss (NOLOAD) : ALIGN(8) {
        __bss_start = .;
        *(.sbss .sbss.* .bss .bss.* COMMON)
        . = ALIGN(8);
        __bss_end = .;
    } > sram
    __free_memory = __bss_end;
    __trap_stack_top = ORIGIN(sram) + LENGTH(sram);
    __stack_top = __trap_stack_top - 4096;
    __stack_bottom = __bss_end;
    __stacks_start = __bss_end;
    __stacks_end = __trap_stack_top;
    __ram_start = ORIGIN(sram);
    __ram_end = __trap_stack_top;
    ASSERT(__bss_end + 16384 <= __stack_top, "the boot ROM has no stack")
}
