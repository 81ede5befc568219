/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * essd-ecc: error correction of DRAM and SRAM; the core is hw-model/ecc.
 * Reference: docs/hardware/ecc.md
 *
 * QEMU interface (the object is /machine/ecc):
 *  + sysbus MMIO region 0: the registers of hw-model/regs/ecc.h
 *  + sysbus IRQ 0: level, high while an enabled bit of STATUS is set
 *  + property "inject", write-only: "ADDRESS BITS", both hexadecimal, flips
 *    these bits of the 64-bit word at this address
 *  + property "words", read-only: how many words have an error
 *
 * An MMIO region covers each page with such a word, so that loads and stores of
 * the harts come to this device.  Without errors there is no such region.
 */
#ifndef ESSD_ECC_H
#define ESSD_ECC_H

#include "hw/sysbus.h"
#include "qom/object.h"

#include "essd_core.h"
#include "hw-model/ecc/hw_ecc.h"

#define TYPE_ESSD_ECC "essd-ecc"
OBJECT_DECLARE_SIMPLE_TYPE(EssdEccState, ESSD_ECC)

#define ESSD_ECC_PAGE 4096

typedef struct EssdEccPage {
    EssdEccState *ecc;
    MemoryRegion iomem;
    hwaddr base;
    uint8_t *ptr; /* the page's memory */
    bool is_on;
} EssdEccPage;

struct EssdEccState {
    SysBusDevice parent_obj;

    MemoryRegion iomem;
    qemu_irq irq;
    QEMUBH *bh; /* changes the pages, outside of accesses to them */
    EssdCore *cores;
    uint8_t *sram;
    uint8_t *dram;
    uint64_t dram_size;
    EssdEccPage page[HW_ECC_WORDS];
    bool powered; /* false until the first reset is over; saved */
    struct hw_ecc core;
};

/* Where the machine has its memories.  Call this once, before realising. */
void essd_ecc_set_memories(EssdEccState *s, MemoryRegion *sram,
                           MemoryRegion *dram);

/* Whether the machine has DRAM or SRAM at all of these addresses. */
bool essd_ecc_is_memory(hwaddr addr, uint64_t len);

/*
 * A device without an EssdCore is about to write to memory.  This returns false
 * if a word of which it writes only a part has an error that cannot be
 * corrected.  Then the device must not write.
 */
bool essd_ecc_device_writes(hwaddr addr, uint64_t len);

#endif
