/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reference: Arm PrimeCell SSP (PL022) TRM, DDI 0194; docs/hardware/soc.md;
 * docs/hardware/spi-dma.md.
 * Not used: interrupts, frames of more than 8 bits.
 */
#include "firmware/drivers/spi.h"

#include "firmware/hal/barrier.h"
#include "firmware/hal/dram.h"
#include "firmware/hal/mmio.h"
#include "lib/regfields.h"
#include "hw-model/regs/spi_dma.h"

/* clang-format off */
REG32(SSP_CR0, 0x00)
    FIELD(SSP_CR0, DATA_SIZE, 0, 4)     /* bits per frame, minus 1 */
    FIELD(SSP_CR0, RATE, 8, 8)
REG32(SSP_CR1, 0x04)
    FIELD(SSP_CR1, ENABLE, 1, 1)
REG32(SSP_DR, 0x08)
REG32(SSP_SR, 0x0c)
    FIELD(SSP_SR, RX_NOT_EMPTY, 2, 1)
    FIELD(SSP_SR, RX_FULL, 3, 1)
REG32(SSP_CPSR, 0x10)
REG32(SSP_IMSC, 0x14)
/* clang-format on */

#define FIFO_FRAMES 8
/* Shorter reads do not use DMA: its start costs as much as moving 4 bytes. */
#define DMA_BYTES_MIN 16

void spi_init(struct spi *spi, uintptr_t base, uintptr_t dma_base)
{
    spi->base = base;
    spi->dma_base = dma_base;
    mmio_write32(base + A_SSP_CR1, 0);
    mmio_write32(base + A_SSP_IMSC, 0);
    mmio_write32(base + A_SSP_CPSR, 2); /* the smallest divisor */
    mmio_write32(base + A_SSP_CR0, FIELD_SET(0, SSP_CR0, DATA_SIZE, 7));
    mmio_write32(base + A_SSP_CR1, FIELD_SET(0, SSP_CR1, ENABLE, 1));
    while (FIELD_GET(mmio_read32(base + A_SSP_SR), SSP_SR, RX_NOT_EMPTY)) {
        (void)mmio_read32(base + A_SSP_DR);
    }
}

static void wait_for_full(const struct spi *spi)
{
    while (!FIELD_GET(mmio_read32(spi->base + A_SSP_SR), SSP_SR, RX_FULL)) {
    }
}

static void wait_for_one(const struct spi *spi)
{
    while (
        !FIELD_GET(mmio_read32(spi->base + A_SSP_SR), SSP_SR, RX_NOT_EMPTY)) {
    }
}

/*
 * Transfer as many bytes at a time as the receive FIFO holds.  No byte can be
 * lost, and one status read serves eight bytes.
 */
void spi_transfer(const struct spi *spi, const uint8_t *tx, uint8_t *rx,
                  size_t len)
{
    for (size_t done = 0; done < len;) {
        size_t burst = MIN(len - done, (size_t)FIFO_FRAMES);

        for (size_t i = 0; i < burst; i++) {
            mmio_write32(spi->base + A_SSP_DR, tx ? tx[done + i] : 0);
        }
        if (burst == FIFO_FRAMES) {
            wait_for_full(spi);
        }
        for (size_t i = 0; i < burst; i++) {
            uint8_t byte;

            if (burst != FIFO_FRAMES) {
                wait_for_one(spi);
            }
            byte = (uint8_t)mmio_read32(spi->base + A_SSP_DR);
            if (rx) {
                rx[done + i] = byte;
            }
        }
        done += burst;
    }
}

/* The channel fails if there is no memory at the address, which is a mistake of
 * the caller, or if it would write only a part of a lost word.  In the second
 * case a reset helps, because a start sets the lost words of memory to zero. */
static void receive_by_dma(const struct spi *spi, uint8_t *rx, size_t len)
{
    uint64_t addr = hal_dma_addr(rx);
    uint32_t status;

    mmio_write32(spi->dma_base + A_SPI_DMA_ADDR_LO, (uint32_t)addr);
    mmio_write32(spi->dma_base + A_SPI_DMA_ADDR_HI, (uint32_t)(addr >> 32));
    mmio_write32(spi->dma_base + A_SPI_DMA_LEN, (uint32_t)len);
    hal_dma_wmb();
    mmio_write32(spi->dma_base + A_SPI_DMA_CTRL,
                 FIELD_MAKE(SPI_DMA_CTRL, START, 1));
    do {
        status = mmio_read32(spi->dma_base + A_SPI_DMA_STATUS);
    } while (FIELD_GET(status, SPI_DMA_STATUS, BUSY));
    hal_dma_rmb();
    ASSERT(!FIELD_GET(status, SPI_DMA_STATUS, ERROR));
}

void spi_receive(const struct spi *spi, uint8_t *rx, size_t len)
{
    while (len >= DMA_BYTES_MIN) {
        size_t part = MIN(len, (size_t)SPI_DMA_LEN_MAX);

        receive_by_dma(spi, rx, part);
        rx += part;
        len -= part;
    }
    spi_transfer(spi, NULL, rx, len);
}
