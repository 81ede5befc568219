/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Registers of the SPI controller's DMA channel.  Includes nothing; include it
 * after QEMU's hw/registerfields.h or lib/regfields.h.
 * Reference: docs/hardware/spi-dma.md
 */
#ifndef ESSD_REGS_SPI_DMA_H
#define ESSD_REGS_SPI_DMA_H

/* clang-format off */
REG32(SPI_DMA_ADDR_LO, 0x00)           /* rw: where the bytes go, in DRAM or
                                        * SRAM */
REG32(SPI_DMA_ADDR_HI, 0x04)           /* rw */
REG32(SPI_DMA_LEN, 0x08)               /* rw: bytes, 1 to SPI_DMA_LEN_MAX */
REG32(SPI_DMA_CTRL, 0x0c)              /* wo */
    FIELD(SPI_DMA_CTRL, START, 0, 1)           /* begins a transfer */
REG32(SPI_DMA_STATUS, 0x10)            /* ro */
    FIELD(SPI_DMA_STATUS, BUSY, 0, 1)          /* a transfer is going on */
    FIELD(SPI_DMA_STATUS, ERROR, 1, 1)         /* the last one failed */
/* clang-format on */

#define SPI_DMA_LEN_MAX 65536u

#endif
