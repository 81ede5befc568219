/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * essd-spi-dma: DMA channel of the SPI controller.  It sends zero bytes on the
 * controller's bus and writes what the selected device answers to memory.
 * Reference: docs/hardware/spi-dma.md
 *
 * A transfer is complete when the write that starts it returns, so the machine
 * is never saved in the middle of one.
 *
 * Not modelled: bit rates, interrupts, sending from memory.
 */
#include "qemu/osdep.h"
#include "essd_spi_dma.h"

#include "essd_ecc.h"

#include "exec/address-spaces.h"
#include "hw/qdev-properties.h"
#include "hw/registerfields.h"
#include "hw/ssi/ssi.h"
#include "migration/vmstate.h"
#include "qapi/error.h"
#include "qemu/log.h"
#include "qemu/module.h"
#include "trace.h"

#include "hw-model/regs/soc.h"
#include "hw-model/regs/spi_dma.h"

#define PIECE_BYTES 4096

static uint64_t essd_spi_dma_read(void *opaque, hwaddr offset, unsigned size)
{
    EssdSpiDmaState *s = ESSD_SPI_DMA(opaque);
    uint32_t value = 0;

    switch (offset) {
    case A_SPI_DMA_ADDR_LO:
        value = s->addr[0];
        break;
    case A_SPI_DMA_ADDR_HI:
        value = s->addr[1];
        break;
    case A_SPI_DMA_LEN:
        value = s->len;
        break;
    case A_SPI_DMA_STATUS:
        value = s->status;
        break;
    default:
        qemu_log_mask(LOG_GUEST_ERROR,
                      "essd-spi-dma: read of offset 0x%" HWADDR_PRIx "\n",
                      offset);
        break;
    }
    trace_essd_spi_dma_read(offset, value);
    return value;
}

/* Receive up to PIECE_BYTES; false when there is no memory at `to`, or the
 * memory has an error that cannot be corrected. */
static bool receive_piece(EssdSpiDmaState *s, hwaddr to, uint32_t len)
{
    /* Registers are refused; pages with memory errors look like registers. */
    bool is_memory = essd_ecc_is_memory(to, len);
    const MemTxAttrs attrs = {.memory = !is_memory};
    uint8_t piece[PIECE_BYTES];

    for (uint32_t i = 0; i < len; i++) {
        piece[i] = ssi_transfer(s->spi->ssi, 0);
    }
    return (!is_memory || essd_ecc_device_writes(to, len)) &&
           address_space_write(&address_space_memory, to, attrs, piece, len) ==
               MEMTX_OK;
}

static void start_transfer(EssdSpiDmaState *s)
{
    hwaddr to = (hwaddr)s->addr[1] << 32 | s->addr[0];

    if (s->len == 0 || s->len > SPI_DMA_LEN_MAX) {
        qemu_log_mask(LOG_GUEST_ERROR,
                      "essd-spi-dma: START with a length of %u\n", s->len);
        return;
    }
    s->status = 0;
    for (uint32_t done = 0; done < s->len && s->status == 0;) {
        uint32_t len = MIN(s->len - done, PIECE_BYTES);

        if (!receive_piece(s, to + done, len)) {
            s->status = FIELD_DP32(0, SPI_DMA_STATUS, ERROR, 1);
        }
        done += len;
    }
}

static void essd_spi_dma_write(void *opaque, hwaddr offset, uint64_t value,
                               unsigned size)
{
    EssdSpiDmaState *s = ESSD_SPI_DMA(opaque);

    trace_essd_spi_dma_write(offset, value);
    switch (offset) {
    case A_SPI_DMA_ADDR_LO:
        s->addr[0] = value;
        break;
    case A_SPI_DMA_ADDR_HI:
        s->addr[1] = value;
        break;
    case A_SPI_DMA_LEN:
        s->len = value;
        break;
    case A_SPI_DMA_CTRL:
        if (FIELD_EX32(value, SPI_DMA_CTRL, START)) {
            start_transfer(s);
        }
        break;
    default:
        qemu_log_mask(LOG_GUEST_ERROR,
                      "essd-spi-dma: write of 0x%" PRIx64
                      " to offset 0x%" HWADDR_PRIx "\n",
                      value, offset);
        break;
    }
}

static const MemoryRegionOps essd_spi_dma_ops = {
    .read = essd_spi_dma_read,
    .write = essd_spi_dma_write,
    .endianness = DEVICE_LITTLE_ENDIAN,
    .valid.min_access_size = 4,
    .valid.max_access_size = 4,
    .impl.min_access_size = 4,
    .impl.max_access_size = 4,
};

static void essd_spi_dma_reset_hold(Object *obj, ResetType type)
{
    EssdSpiDmaState *s = ESSD_SPI_DMA(obj);

    memset(s->addr, 0, sizeof(s->addr));
    s->len = 0;
    s->status = 0;
}

static void essd_spi_dma_realize(DeviceState *dev, Error **errp)
{
    EssdSpiDmaState *s = ESSD_SPI_DMA(dev);

    if (s->spi == NULL) {
        error_setg(errp, "essd-spi-dma: the link 'spi' is not set");
    }
}

static void essd_spi_dma_init(Object *obj)
{
    EssdSpiDmaState *s = ESSD_SPI_DMA(obj);

    memory_region_init_io(&s->iomem, obj, &essd_spi_dma_ops, s,
                          TYPE_ESSD_SPI_DMA, SOC_SPI_DMA_SIZE);
    sysbus_init_mmio(SYS_BUS_DEVICE(obj), &s->iomem);
}

static const VMStateDescription vmstate_essd_spi_dma = {
    .name = TYPE_ESSD_SPI_DMA,
    .version_id = 1,
    .minimum_version_id = 1,
    .fields = (const VMStateField[]){
        VMSTATE_UINT32_ARRAY(addr, EssdSpiDmaState, 2),
        VMSTATE_UINT32(len, EssdSpiDmaState),
        VMSTATE_UINT32(status, EssdSpiDmaState), VMSTATE_END_OF_LIST()}};

static const Property essd_spi_dma_properties[] = {
    DEFINE_PROP_LINK("spi", EssdSpiDmaState, spi, TYPE_PL022, PL022State *),
};

static void essd_spi_dma_class_init(ObjectClass *klass, void *data)
{
    DeviceClass *dc = DEVICE_CLASS(klass);
    ResettableClass *rc = RESETTABLE_CLASS(klass);

    dc->desc = "Ethernet SSD SPI DMA channel";
    dc->vmsd = &vmstate_essd_spi_dma;
    dc->realize = essd_spi_dma_realize;
    dc->user_creatable = false; /* it is part of the machine */
    device_class_set_props(dc, essd_spi_dma_properties);
    rc->phases.hold = essd_spi_dma_reset_hold;
}

static const TypeInfo essd_spi_dma_types[] = {
    {
        .name = TYPE_ESSD_SPI_DMA,
        .parent = TYPE_SYS_BUS_DEVICE,
        .instance_size = sizeof(EssdSpiDmaState),
        .instance_init = essd_spi_dma_init,
        .class_init = essd_spi_dma_class_init,
    },
};

DEFINE_TYPES(essd_spi_dma_types)
