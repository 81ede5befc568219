/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Error correction of DRAM and SRAM: single-bit errors of a 64-bit word are
 * corrected, double ones are detected.
 * Reference: docs/hardware/ecc.md
 *
 * The memories hold the right data.  This model holds a list of words with
 * their wrong bits.  While the list is not empty, everything that accesses
 * memory asks the model before.  Only hw_ecc_inject() makes errors.
 *
 * Not modelled: errors in the check bits.  Errors of more than two bits are
 * always detected here, like double ones.
 */
#ifndef ESSD_HW_ECC_H
#define ESSD_HW_ECC_H

#include "lib/util.h"

enum { HW_ECC_WORDS = 64 };

struct hw_ecc_word {
    uint64_t addr; /* a multiple of 8 */
    uint64_t bits; /* that are wrong, at least one */
};

struct hw_ecc_config {
    void *ctx;
    void (*set_irq)(void *ctx, bool level);
    /* The list has changed. */
    void (*changed)(void *ctx);
    /* Write zeroes to the word at `addr`, whose content is lost. */
    void (*clear_word)(void *ctx, uint64_t addr);
};

/* Everything but `config` is saved with the machine.  Treat as opaque. */
struct hw_ecc {
    struct hw_ecc_config config;
    struct hw_ecc_word words[HW_ECC_WORDS];
    uint32_t count; /* of words */
    uint32_t ctrl, status;
    uint32_t corrected, uncorrected;
    uint64_t corrected_addr, uncorrected_addr;
    uint64_t scrub_addr;
    uint32_t scrub_len;
};

void hw_ecc_init(struct hw_ecc *ecc, const struct hw_ecc_config *config);

/** @param is_power_on  the memories lose their content */
void hw_ecc_reset(struct hw_ecc *ecc, bool is_power_on);

/** Set the interrupt, and report the list, after the state was loaded. */
void hw_ecc_loaded(struct hw_ecc *ecc);

/**
 * Flip bits of the word at `addr`.  Flipping a bit a second time restores it.
 *
 * @return false when `addr` is not a multiple of 8, no bit is given, or the
 *         list is full
 */
MUST_USE bool hw_ecc_inject(struct hw_ecc *ecc, uint64_t addr, uint64_t bits);

/** Whether any word has an error.  Without one, nobody needs to ask. */
static inline bool hw_ecc_has_errors(const struct hw_ecc *ecc)
{
    return ecc->count != 0;
}

/**
 * A part of memory is read.
 *
 * @return false when a word in it has an error that cannot be corrected
 */
MUST_USE bool hw_ecc_read(struct hw_ecc *ecc, uint64_t addr, uint64_t len,
                          bool by_dma);

/**
 * A part of memory is about to be written.  The words in it have no error
 * afterwards.  A word of which only some bytes are written is read first.
 *
 * @return false when such a word has an error that cannot be corrected; then
 *         nothing may be written, and no error was removed
 */
MUST_USE bool hw_ecc_write(struct hw_ecc *ecc, uint64_t addr, uint64_t len,
                           bool by_dma);

/** @return false when there is no such register */
MUST_USE bool hw_ecc_reg_read(const struct hw_ecc *ecc, uint32_t offset,
                              uint32_t *value);
MUST_USE bool hw_ecc_reg_write(struct hw_ecc *ecc, uint32_t offset,
                               uint32_t value);

#endif
