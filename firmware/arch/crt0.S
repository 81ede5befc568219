/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The start of a hart, in the boot ROM and in the firmware alike: hart 0 gets
 * a stack and zeroed data and runs arch_main(), the others park.
 *
 * The linker scripts define the symbols that begin with two underscores.
 */
#include "hw-model/regs/soc.h"

#define SYSCTL_HART_ENTRY  (SOC_SYSCTL_BASE + 0x020)
#define ECC_SCRUB_LO       0x024
#define ECC_SCRUB_HI       0x028
#define ECC_SCRUB_LEN      0x02c
#define ECC_SCRUB          0x030
#define ECC_SCRUB_ALL      3 /* CORRECT and CLEAR */
#define MSIE               (1 << 3)
#define MSTATUS_FS_INITIAL (1 << 13)

/* Smrnmi; the assembler does not know the names. */
#define CSR_MNSCRATCH 0x740
#define CSR_MNEPC     0x741

    .section .text.start, "ax"
    .globl _start
_start:
    .option push
    .option norelax
    la      gp, __global_pointer$
    .option pop
    csrw    mie, zero
    csrw    satp, zero
    la      t0, trap_entry
    csrw    mtvec, t0
    li      t0, MSTATUS_FS_INITIAL
    csrw    mstatus, t0
    csrr    a0, mhartid
    bnez    a0, park

    /* Correct the wrong words of variables and stacks, and set those that are
     * lost to zero, before anything reads them. */
    li      t0, SOC_ECC_BASE
    la      t1, __ram_start
    la      t2, __ram_end
    sub     t2, t2, t1
    srli    t3, t1, 32
    li      t4, ECC_SCRUB_ALL
    sw      t1, ECC_SCRUB_LO(t0)
    sw      t3, ECC_SCRUB_HI(t0)
    sw      t2, ECC_SCRUB_LEN(t0)
    sw      t4, ECC_SCRUB(t0)

    la      sp, __stack_top
    la      t0, __trap_stack_top
    csrw    mscratch, t0

    la      t0, __bss_start
    la      t1, __bss_end
1:  bgeu    t0, t1, 2f
    sd      zero, 0(t0)
    addi    t0, t0, 8
    j       1b
2:  call    arch_main
3:  wfi
    j       3b

/* Wait for the software interrupt, then jump to the address that sysctl holds.
 * a0 is the number of the hart. */
park:
    li      t0, MSIE
    csrw    mie, t0
1:  wfi
    csrr    t0, mip
    andi    t0, t0, MSIE
    beqz    t0, 1b
    slli    t1, a0, 2
    li      t0, SOC_CLINT_BASE
    add     t0, t0, t1
    sw      zero, 0(t0)
    li      t0, SYSCTL_HART_ENTRY
    lwu     t1, 0(t0)
    lwu     t2, 4(t0)
    slli    t2, t2, 32
    or      t1, t1, t2
    beqz    t1, 1b
    jr      t1

/* void arch_start(uintptr_t entry, uint64_t hart) */
    .globl arch_start
arch_start:
    fence   rw, rw
    fence.i
    mv      t0, a0
    mv      a0, a1
    jr      t0

/*
 * mtvec has this address.  A non-maskable interrupt starts in the boot ROM
 * (boot/nmi.S), which jumps to the second word; an exception while
 * mnstatus.NMIE is clear to the third.
 */
    .balign 4
    .option push
    .option norvc
trap_entry:
    j       trap_save
    j       nmi_save
    j       early_save
    .option pop

/* An exception while mnstatus.NMIE is clear.  t0 is in mnscratch. */
early_save:
    csrr    t0, CSR_MNSCRATCH

/* Every trap is an error of the firmware: save the registers and report it. */
trap_save:
    csrrw   sp, mscratch, sp
    addi    sp, sp, -256
    sd      x1, 8(sp)
    sd      x5, 40(sp)
    csrr    t0, mepc
    sd      t0, 0(sp)
    csrr    t0, mscratch        /* the sp of the code that failed */
    sd      t0, 16(sp)
    addi    t0, sp, 256         /* for a trap in the handler */
    csrw    mscratch, t0
    call    save_registers
    call    trap_panic
1:  wfi
    j       1b

/*
 * A non-maskable interrupt: the watchdog's.  It may come at any instruction,
 * also in the handler of a trap.  t0 is in mnscratch.
 */
nmi_save:
    la      t0, __trap_stack_top
    sd      sp, -240(t0)
    addi    sp, t0, -256
    sd      x1, 8(sp)
    csrr    t0, CSR_MNSCRATCH
    sd      t0, 40(sp)
    csrr    t0, CSR_MNEPC
    sd      t0, 0(sp)
    call    save_registers
    call    nmi_panic
1:  wfi
    j       1b

/*
 * Save the registers that are not in the frame at sp yet: pc, x1, x2 and x5
 * are.  Leaves the frame's address in a0.
 */
save_registers:
    sd      x3, 24(sp)
    sd      x4, 32(sp)
    sd      x6, 48(sp)
    sd      x7, 56(sp)
    sd      x8, 64(sp)
    sd      x9, 72(sp)
    sd      x10, 80(sp)
    sd      x11, 88(sp)
    sd      x12, 96(sp)
    sd      x13, 104(sp)
    sd      x14, 112(sp)
    sd      x15, 120(sp)
    sd      x16, 128(sp)
    sd      x17, 136(sp)
    sd      x18, 144(sp)
    sd      x19, 152(sp)
    sd      x20, 160(sp)
    sd      x21, 168(sp)
    sd      x22, 176(sp)
    sd      x23, 184(sp)
    sd      x24, 192(sp)
    sd      x25, 200(sp)
    sd      x26, 208(sp)
    sd      x27, 216(sp)
    sd      x28, 224(sp)
    sd      x29, 232(sp)
    sd      x30, 240(sp)
    sd      x31, 248(sp)
    mv      a0, sp
    ret
