/* SPDX-License-Identifier: BSD-2-Clause */
#include "hw-model/ecc/hw_ecc.h"

#include <string.h>

#include "lib/regfields.h"
#include "hw-model/regs/ecc.h"

/* ---- The list of words. */

static bool is_single(uint64_t bits)
{
    return (bits & (bits - 1)) == 0;
}

static bool word_touches_range(const struct hw_ecc_word *word, uint64_t addr,
                               uint64_t len)
{
    return word->addr < addr + len && addr < word->addr + ECC_WORD_BYTES;
}

static void remove_word(struct hw_ecc *ecc, uint32_t i)
{
    ecc->words[i] = ecc->words[--ecc->count];
}

static void update_irq(const struct hw_ecc *ecc)
{
    uint32_t wanted = (FIELD_GET(ecc->ctrl, ECC_CTRL, IRQ_CORRECTED)
                           ? FIELD_MAKE(ECC_STATUS, CORRECTED, 1)
                           : 0) |
                      (FIELD_GET(ecc->ctrl, ECC_CTRL, IRQ_UNCORRECTED)
                           ? FIELD_MAKE(ECC_STATUS, UNCORRECTED, 1)
                           : 0);

    ecc->config.set_irq(ecc->config.ctx, (ecc->status & wanted) != 0);
}

static void note_corrected(struct hw_ecc *ecc, uint64_t addr)
{
    ecc->corrected += ecc->corrected != UINT32_MAX;
    if (FIELD_GET(ecc->status, ECC_STATUS, CORRECTED) == 0) {
        ecc->status |= FIELD_MAKE(ECC_STATUS, CORRECTED, 1);
        ecc->corrected_addr = addr;
    }
}

static void note_uncorrected(struct hw_ecc *ecc, uint64_t addr, bool by_dma)
{
    ecc->uncorrected += ecc->uncorrected != UINT32_MAX;
    if (FIELD_GET(ecc->status, ECC_STATUS, UNCORRECTED) == 0) {
        ecc->status |= FIELD_MAKE(ECC_STATUS, UNCORRECTED, 1);
        ecc->status = FIELD_SET(ecc->status, ECC_STATUS, BY_DMA, by_dma);
        ecc->uncorrected_addr = addr;
    }
}

bool hw_ecc_inject(struct hw_ecc *ecc, uint64_t addr, uint64_t bits)
{
    if (addr % ECC_WORD_BYTES != 0 || bits == 0) {
        return false;
    }
    for (uint32_t i = 0; i < ecc->count; i++) {
        if (ecc->words[i].addr == addr) {
            ecc->words[i].bits ^= bits;
            if (ecc->words[i].bits == 0) {
                remove_word(ecc, i);
            }
            ecc->config.changed(ecc->config.ctx);
            return true;
        }
    }
    if (ecc->count == HW_ECC_WORDS) {
        return false;
    }
    ecc->words[ecc->count++] = (struct hw_ecc_word){addr, bits};
    ecc->config.changed(ecc->config.ctx);
    return true;
}

/* Count the errors of words that are read.  @return whether none is lost */
static bool note_errors(struct hw_ecc *ecc, uint64_t addr, uint64_t len,
                        bool by_dma)
{
    bool is_right = true;

    for (uint32_t i = 0; i < ecc->count; i++) {
        if (!word_touches_range(&ecc->words[i], addr, len)) {
            continue;
        }
        if (is_single(ecc->words[i].bits)) {
            note_corrected(ecc, ecc->words[i].addr);
        } else {
            note_uncorrected(ecc, ecc->words[i].addr, by_dma);
            is_right = false;
        }
        update_irq(ecc);
    }
    return is_right;
}

bool hw_ecc_read(struct hw_ecc *ecc, uint64_t addr, uint64_t len, bool by_dma)
{
    return note_errors(ecc, addr, len, by_dma);
}

/* Read the words at the edges of a range, of which only a part is written.
 * @return false when one of them cannot be corrected */
static bool read_edges(struct hw_ecc *ecc, uint64_t addr, uint64_t len,
                       bool by_dma)
{
    uint64_t end = addr + len;
    bool is_right = true;

    if (addr % ECC_WORD_BYTES != 0) {
        is_right = hw_ecc_read(ecc, addr, 1, by_dma);
    }
    if (end % ECC_WORD_BYTES != 0 &&
        (addr % ECC_WORD_BYTES == 0 ||
         end / ECC_WORD_BYTES != addr / ECC_WORD_BYTES)) {
        is_right &= hw_ecc_read(ecc, end - 1, 1, by_dma);
    }
    return is_right;
}

bool hw_ecc_write(struct hw_ecc *ecc, uint64_t addr, uint64_t len, bool by_dma)
{
    uint32_t before = ecc->count;

    if (len == 0 || !read_edges(ecc, addr, len, by_dma)) {
        return len == 0;
    }
    for (uint32_t i = ecc->count; i-- > 0;) {
        if (word_touches_range(&ecc->words[i], addr, len)) {
            remove_word(ecc, i);
        }
    }
    if (ecc->count != before) {
        ecc->config.changed(ecc->config.ctx);
    }
    return true;
}

/* ---- Registers. */

/* Read the range like a device, up to its first word that is lost. */
static void check_range(struct hw_ecc *ecc)
{
    uint64_t end = ecc->scrub_addr + ecc->scrub_len;

    for (uint32_t i = 0; i < ecc->count; i++) {
        const struct hw_ecc_word *word = &ecc->words[i];

        if (!is_single(word->bits) && word->addr < end &&
            word_touches_range(word, ecc->scrub_addr, ecc->scrub_len)) {
            end = word->addr + ECC_WORD_BYTES;
        }
    }
    (void)note_errors(ecc, ecc->scrub_addr, end - ecc->scrub_addr, true);
}

/* Correct or zero each word of the range, or check the range, as `value` says.
 */
static void scrub_range(struct hw_ecc *ecc, uint32_t value)
{
    uint32_t before = ecc->count;

    for (uint32_t i = ecc->count; i-- > 0;) {
        const struct hw_ecc_word word = ecc->words[i];

        if (!word_touches_range(&word, ecc->scrub_addr, ecc->scrub_len)) {
            continue;
        }
        if (is_single(word.bits)) {
            if (FIELD_GET(value, ECC_SCRUB, CORRECT)) {
                note_corrected(ecc, word.addr);
                remove_word(ecc, i);
            }
        } else if (FIELD_GET(value, ECC_SCRUB, CLEAR)) {
            remove_word(ecc, i);
            ecc->config.clear_word(ecc->config.ctx, word.addr);
        }
    }
    if (FIELD_GET(value, ECC_SCRUB, CHECK)) {
        check_range(ecc);
    }
    update_irq(ecc);
    if (ecc->count != before) {
        ecc->config.changed(ecc->config.ctx);
    }
}

bool hw_ecc_reg_read(const struct hw_ecc *ecc, uint32_t offset, uint32_t *value)
{
    switch (offset) {
    case A_ECC_ID:
        *value = ECC_ID_VALUE;
        break;
    case A_ECC_CTRL:
        *value = ecc->ctrl;
        break;
    case A_ECC_STATUS:
        *value = ecc->status;
        break;
    case A_ECC_CORRECTED:
        *value = ecc->corrected;
        break;
    case A_ECC_UNCORRECTED:
        *value = ecc->uncorrected;
        break;
    case A_ECC_CORRECTED_LO:
        *value = (uint32_t)ecc->corrected_addr;
        break;
    case A_ECC_CORRECTED_HI:
        *value = (uint32_t)(ecc->corrected_addr >> 32);
        break;
    case A_ECC_UNCORRECTED_LO:
        *value = (uint32_t)ecc->uncorrected_addr;
        break;
    case A_ECC_UNCORRECTED_HI:
        *value = (uint32_t)(ecc->uncorrected_addr >> 32);
        break;
    case A_ECC_SCRUB_LO:
        *value = (uint32_t)ecc->scrub_addr;
        break;
    case A_ECC_SCRUB_HI:
        *value = (uint32_t)(ecc->scrub_addr >> 32);
        break;
    case A_ECC_SCRUB_LEN:
        *value = ecc->scrub_len;
        break;
    default:
        *value = 0;
        return false;
    }
    return true;
}

bool hw_ecc_reg_write(struct hw_ecc *ecc, uint32_t offset, uint32_t value)
{
    switch (offset) {
    case A_ECC_CTRL:
        ecc->ctrl = value & (FIELD_MAKE(ECC_CTRL, IRQ_CORRECTED, 1) |
                             FIELD_MAKE(ECC_CTRL, IRQ_UNCORRECTED, 1));
        break;
    case A_ECC_STATUS:
        value &= FIELD_MAKE(ECC_STATUS, CORRECTED, 1) |
                 FIELD_MAKE(ECC_STATUS, UNCORRECTED, 1);
        if (FIELD_GET(value, ECC_STATUS, UNCORRECTED)) {
            value |= FIELD_MAKE(ECC_STATUS, BY_DMA, 1);
        }
        ecc->status &= ~value;
        break;
    case A_ECC_SCRUB_LO:
        ecc->scrub_addr = (ecc->scrub_addr & ~(uint64_t)UINT32_MAX) | value;
        break;
    case A_ECC_SCRUB_HI:
        ecc->scrub_addr = (uint32_t)ecc->scrub_addr | (uint64_t)value << 32;
        break;
    case A_ECC_SCRUB_LEN:
        ecc->scrub_len = value;
        break;
    case A_ECC_SCRUB:
        scrub_range(ecc, value);
        break;
    default:
        return false;
    }
    update_irq(ecc);
    return true;
}

/* ---- Life. */

void hw_ecc_init(struct hw_ecc *ecc, const struct hw_ecc_config *config)
{
    memset(ecc, 0, sizeof(*ecc));
    ecc->config = *config;
}

void hw_ecc_reset(struct hw_ecc *ecc, bool is_power_on)
{
    ecc->ctrl = 0;
    ecc->scrub_addr = 0;
    ecc->scrub_len = 0;
    if (is_power_on) {
        ecc->count = 0;
        ecc->status = 0;
        ecc->corrected = 0;
        ecc->uncorrected = 0;
        ecc->corrected_addr = 0;
        ecc->uncorrected_addr = 0;
    }
    hw_ecc_loaded(ecc);
}

void hw_ecc_loaded(struct hw_ecc *ecc)
{
    update_irq(ecc);
    ecc->config.changed(ecc->config.ctx);
}
