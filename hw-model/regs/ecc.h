/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Error correction of DRAM and SRAM: registers, read by the model and by the
 * driver.  Programming guide: docs/hardware/ecc.md.  Includes nothing; the
 * reader includes "hw/registerfields.h" or "lib/regfields.h" first.
 */
#ifndef ESSD_REGS_ECC_H
#define ESSD_REGS_ECC_H

/* clang-format off */
REG32(ECC_ID, 0x000)                 /* ro: "ECC" and version 1 */
REG32(ECC_CTRL, 0x004)               /* rw, 0 after every reset: errors that
                                      * raise the interrupt */
    FIELD(ECC_CTRL, IRQ_CORRECTED, 0, 1)
    FIELD(ECC_CTRL, IRQ_UNCORRECTED, 1, 1)
REG32(ECC_STATUS, 0x008)             /* w1c; only power-on clears it */
    FIELD(ECC_STATUS, CORRECTED, 0, 1)
    FIELD(ECC_STATUS, UNCORRECTED, 1, 1)
    FIELD(ECC_STATUS, BY_DMA, 2, 1)          /* ro: a device read the word */
REG32(ECC_CORRECTED, 0x00c)          /* ro: errors since power-on */
REG32(ECC_UNCORRECTED, 0x010)
REG32(ECC_CORRECTED_LO, 0x014)       /* ro: address of the first error since */
REG32(ECC_CORRECTED_HI, 0x018)       /* the bit in STATUS was cleared */
REG32(ECC_UNCORRECTED_LO, 0x01c)
REG32(ECC_UNCORRECTED_HI, 0x020)
REG32(ECC_SCRUB_LO, 0x024)           /* rw: first byte of a range */
REG32(ECC_SCRUB_HI, 0x028)
REG32(ECC_SCRUB_LEN, 0x02c)          /* rw: bytes */
REG32(ECC_SCRUB, 0x030)              /* wo: does this with the range */
    FIELD(ECC_SCRUB, CORRECT, 0, 1)          /* count and write back corrected
                                              * words */
    FIELD(ECC_SCRUB, CLEAR, 1, 1)            /* zero words that are lost */
    FIELD(ECC_SCRUB, CHECK, 2, 1)            /* read until a word is lost; its
                                              * address is UNCORRECTED_LO/HI */
/* clang-format on */

enum {
    ECC_ID_VALUE = 0x45434301,
    ECC_WORD_BYTES = 8, /* what one code covers */
};

#endif
