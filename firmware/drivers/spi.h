/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * SPI controller: Arm PrimeCell PL022, as master, 8 bits, mode 0, polled, and
 * the DMA channel for long reads.
 */
#ifndef ESSD_DRIVERS_SPI_H
#define ESSD_DRIVERS_SPI_H

#include "lib/util.h"

struct spi {
    uintptr_t base;
    uintptr_t dma_base;
};

void spi_init(struct spi *spi, uintptr_t base, uintptr_t dma_base);

/**
 * Send `len` bytes and receive as many.  The caller selects the device before
 * (drivers/gpio.h).
 *
 * @param tx  NULL sends zero bytes
 * @param rx  NULL discards the received bytes
 */
void spi_transfer(const struct spi *spi, const uint8_t *tx, uint8_t *rx,
                  size_t len);

/**
 * Receive `len` bytes while sending zero bytes, as spi_transfer() does with
 * `tx` NULL, but by DMA when that is faster.
 *
 * @param rx  in memory that devices reach: DRAM or SRAM
 */
void spi_receive(const struct spi *spi, uint8_t *rx, size_t len);

#endif
