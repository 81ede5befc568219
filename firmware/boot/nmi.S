/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where the harts go at a non-maskable interrupt (SOC_NMI_VECTOR), and at an
 * exception while mnstatus.NMIE is clear (SOC_NMI_EXCEPTION).  The program that
 * runs handles them with the second and third words of its trap vector.
 * Spec: RISC-V Smrnmi 1.0
 */
    .section .text.nmi, "ax"
    csrw    0x740, t0           /* mnscratch */
    csrr    t0, mtvec
    jr      4(t0)

    .balign 32
    csrw    0x740, t0
    csrr    t0, mtvec
    jr      8(t0)
