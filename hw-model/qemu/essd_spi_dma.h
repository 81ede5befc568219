/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * essd-spi-dma: DMA channel of the drive's SPI controller.
 * Reference: docs/hardware/spi-dma.md
 *
 * QEMU interface:
 *  + sysbus MMIO region 0: the registers of hw-model/regs/spi_dma.h
 *  + link "spi": the PL022 whose bus the channel reads from
 */
#ifndef ESSD_SPI_DMA_H
#define ESSD_SPI_DMA_H

#include "hw/ssi/pl022.h"
#include "hw/sysbus.h"
#include "qom/object.h"

#define TYPE_ESSD_SPI_DMA "essd-spi-dma"
OBJECT_DECLARE_SIMPLE_TYPE(EssdSpiDmaState, ESSD_SPI_DMA)

struct EssdSpiDmaState {
    SysBusDevice parent_obj;

    MemoryRegion iomem;
    PL022State *spi;

    /* Saved with the machine. */
    uint32_t addr[2]; /* low half, high half */
    uint32_t len;
    uint32_t status;
};

#endif
