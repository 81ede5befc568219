/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Driver of the block that corrects errors of DRAM and SRAM.
 * Reference: docs/hardware/ecc.md
 */
#ifndef ESSD_DRIVERS_ECC_H
#define ESSD_DRIVERS_ECC_H

#include "lib/regfields.h"
#include "hw-model/regs/ecc.h"
#include "lib/util.h"

struct ecc {
    uintptr_t regs;
};

/* What the block has found since the last ecc_take(). */
struct ecc_findings {
    bool has_corrected, has_uncorrected;
    bool is_by_dma; /* a device read the uncorrectable word */
    uint64_t corrected_addr, uncorrected_addr; /* of the first error each */
    uint32_t corrected, uncorrected;           /* errors since power-on */
};

/** @return false when there is no such block */
MUST_USE bool ecc_init(struct ecc *ecc, uintptr_t regs);

/** Let the block raise its interrupt. */
void ecc_arm(const struct ecc *ecc);

/** Read the findings and clear them, which also clears the interrupt. */
void ecc_take(const struct ecc *ecc, struct ecc_findings *findings);

/**
 * Whether the block has found a word that cannot be corrected.  This does not
 * clear the findings.
 * @param addr  set to its address
 */
MUST_USE bool ecc_has_lost(const struct ecc *ecc, uint64_t *addr);

/** Correct all single errors in a range, and write the words back. */
void ecc_scrub(const struct ecc *ecc, uint64_t addr, uint32_t len_bytes);

/** Zero the words of a range that cannot be corrected. */
void ecc_clear(const struct ecc *ecc, uint64_t addr, uint64_t len_bytes);

/**
 * Make the ECC block read a range like a device, up to the first word that
 * cannot be corrected.  It counts the errors that it finds.
 * @return whether the block knows of no word that cannot be corrected.  If
 *         false, ecc_take() returns the address of the word.  It is outside of
 *         the range if a device has found such a word before.
 */
MUST_USE bool ecc_check(const struct ecc *ecc, uint64_t addr,
                        uint32_t len_bytes);

/**
 * Handle an access fault of a hart at this address.  If the word there is lost,
 * set it to zero; ecc_has_lost() then returns its address.  If the block had
 * the address of another lost word, this other word stays lost, so that nothing
 * takes zeroes for good data.
 * @return whether the word was lost
 */
MUST_USE bool ecc_clear_trap_word(const struct ecc *ecc, uint64_t addr);

/** As ecc_clear(), for dram_clear_lost_words(). @param ecc  struct ecc */
void ecc_clear_memory(void *ecc, const void *memory, size_t len_bytes);

#endif
