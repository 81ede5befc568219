/* SPDX-License-Identifier: BSD-2-Clause */
/* Driver of the block that corrects memory errors: see ecc.h. */
#include "firmware/drivers/ecc.h"

#include "firmware/hal/dram.h"
#include "firmware/hal/mmio.h"

/* The most that one scrub covers: the register has 32 bits. */
#define SCRUB_BYTES_MAX UINT32_C(0x80000000)

static uint32_t reg_read(const struct ecc *ecc, uint32_t offset)
{
    return mmio_read32(ecc->regs + offset);
}

static void reg_write(const struct ecc *ecc, uint32_t offset, uint32_t value)
{
    mmio_write32(ecc->regs + offset, value);
}

bool ecc_init(struct ecc *ecc, uintptr_t regs)
{
    *ecc = (struct ecc){.regs = regs};
    return regs != 0 && reg_read(ecc, A_ECC_ID) == ECC_ID_VALUE;
}

void ecc_arm(const struct ecc *ecc)
{
    reg_write(ecc, A_ECC_CTRL,
              FIELD_MAKE(ECC_CTRL, IRQ_CORRECTED, 1) |
                  FIELD_MAKE(ECC_CTRL, IRQ_UNCORRECTED, 1));
}

bool ecc_has_lost(const struct ecc *ecc, uint64_t *addr)
{
    *addr = reg_read(ecc, A_ECC_UNCORRECTED_LO) |
            (uint64_t)reg_read(ecc, A_ECC_UNCORRECTED_HI) << 32;
    return FIELD_GET(reg_read(ecc, A_ECC_STATUS), ECC_STATUS, UNCORRECTED) != 0;
}

void ecc_take(const struct ecc *ecc, struct ecc_findings *findings)
{
    uint32_t status = reg_read(ecc, A_ECC_STATUS);

    *findings = (struct ecc_findings){
        .has_corrected = FIELD_GET(status, ECC_STATUS, CORRECTED) != 0,
        .has_uncorrected = FIELD_GET(status, ECC_STATUS, UNCORRECTED) != 0,
        .is_by_dma = FIELD_GET(status, ECC_STATUS, BY_DMA) != 0,
        .corrected_addr = reg_read(ecc, A_ECC_CORRECTED_LO) |
                          (uint64_t)reg_read(ecc, A_ECC_CORRECTED_HI) << 32,
        .uncorrected_addr = reg_read(ecc, A_ECC_UNCORRECTED_LO) |
                            (uint64_t)reg_read(ecc, A_ECC_UNCORRECTED_HI) << 32,
        .corrected = reg_read(ecc, A_ECC_CORRECTED),
        .uncorrected = reg_read(ecc, A_ECC_UNCORRECTED),
    };
    reg_write(ecc, A_ECC_STATUS, status);
}

static void scrub_range(const struct ecc *ecc, uint64_t addr,
                        uint32_t len_bytes, uint32_t how)
{
    reg_write(ecc, A_ECC_SCRUB_LO, (uint32_t)addr);
    reg_write(ecc, A_ECC_SCRUB_HI, (uint32_t)(addr >> 32));
    reg_write(ecc, A_ECC_SCRUB_LEN, len_bytes);
    reg_write(ecc, A_ECC_SCRUB, how);
}

void ecc_scrub(const struct ecc *ecc, uint64_t addr, uint32_t len_bytes)
{
    scrub_range(ecc, addr, len_bytes, FIELD_MAKE(ECC_SCRUB, CORRECT, 1));
}

void ecc_clear(const struct ecc *ecc, uint64_t addr, uint64_t len_bytes)
{
    while (len_bytes != 0) {
        uint32_t part = (uint32_t)MIN(len_bytes, (uint64_t)SCRUB_BYTES_MAX);

        scrub_range(ecc, addr, part, FIELD_MAKE(ECC_SCRUB, CLEAR, 1));
        addr += part;
        len_bytes -= part;
    }
}

bool ecc_check(const struct ecc *ecc, uint64_t addr, uint32_t len_bytes)
{
    scrub_range(ecc, addr, len_bytes, FIELD_MAKE(ECC_SCRUB, CHECK, 1));
    return FIELD_GET(reg_read(ecc, A_ECC_STATUS), ECC_STATUS, UNCORRECTED) == 0;
}

bool ecc_clear_trap_word(const struct ecc *ecc, uint64_t addr)
{
    uint64_t word = addr & ~(uint64_t)(ECC_WORD_BYTES - 1);
    uint64_t first;

    if (!ecc_has_lost(ecc, &first)) {
        return false;
    }
    if (first != word) {
        reg_write(ecc, A_ECC_STATUS, FIELD_MAKE(ECC_STATUS, UNCORRECTED, 1));
        if (ecc_check(ecc, word, ECC_WORD_BYTES)) {
            scrub_range(ecc, first, ECC_WORD_BYTES,
                        FIELD_MAKE(ECC_SCRUB, CHECK, 1));
            return false;
        }
    }
    ecc_clear(ecc, word, ECC_WORD_BYTES);
    return true;
}

void ecc_clear_memory(void *ecc, const void *memory, size_t len_bytes)
{
    ecc_clear(ecc, hal_dma_addr(memory), len_bytes);
}
