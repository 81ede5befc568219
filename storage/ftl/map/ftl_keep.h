/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The description of the write buffer in memory that a reset does not change:
 * the format of its entries, its trim table and its head.  There are two copies
 * of each, at different addresses.
 * Reference: docs/decisions/0016-write-buffer.md
 */
#ifndef ESSD_FTL_KEEP_H
#define ESSD_FTL_KEEP_H

#include "storage/ftl/map/map_floor.h"
#include "lib/random.h"

enum {
    FTL_KEEP_HEAD_LEN = 64,
    /* Units in a word of trims; the other bits of the word check these bits. */
    FTL_KEEP_TRIM_BITS = 16,
    /* Positions in ftl_keep_entry.unit. */
    FTL_KEEP_MARKS_SHIFT = 32, /* the slot's marks */
    FTL_KEEP_LOST_SHIFT = 40,  /* marks of lost blocks */
};
_Static_assert((int)FTL_KEEP_HEADS_LEN ==
                   (int)FTL_KEEP_COPIES * (int)FTL_KEEP_HEAD_LEN,
               "one head for each copy");

/* An entry.  If its check word is wrong, it describes nothing. */
struct ftl_keep_entry {
    uint64_t check;
    uint64_t sequence; /* of two entries of a unit, the larger one counts */
    /* The number of the logical unit, the marks of the slot, and the marks of
     * blocks whose contents were lost after the entry was written.  The check
     * word does not cover the marks of lost blocks. */
    uint64_t unit;
};

static inline uint64_t ftl_keep_unit(uint32_t number, uint8_t marks)
{
    return number | (uint64_t)marks << FTL_KEEP_MARKS_SHIFT;
}

static inline uint32_t ftl_keep_number(const struct ftl_keep_entry *entry)
{
    return (uint32_t)entry->unit;
}

/* The blocks of an entry that must not be read. */
static inline uint8_t ftl_keep_marks(const struct ftl_keep_entry *entry)
{
    return (uint8_t)(entry->unit >> FTL_KEEP_MARKS_SHIFT |
                     entry->unit >> FTL_KEEP_LOST_SHIFT);
}

static inline uint64_t ftl_keep_check(const struct ftl_keep *keep,
                                      uint16_t buffer,
                                      const struct ftl_keep_entry *entry)
{
    uint64_t place = (uint64_t)(uint8_t)(entry->unit >> FTL_KEEP_MARKS_SHIFT)
                         << 48 |
                     (uint64_t)buffer << 32 | ftl_keep_number(entry);
    uint64_t check =
        random_mix(random_mix(keep->generation + entry->sequence) ^ place);

    return check != 0 ? check : 1;
}

/* The store of the check word completes the entry. */
static inline void ftl_keep_write_entry(struct ftl_keep_entry *entry,
                                        const struct ftl_keep_entry *contents)
{
    entry->sequence = contents->sequence;
    entry->unit = contents->unit;
    __atomic_store_n(&entry->check, contents->check, __ATOMIC_RELEASE);
}

/* The upper half of a word of trims is the inverse of the lower half, changed
 * by the word's number.  So no valid word is 0, the value to which a lost word
 * is set. */
static inline uint32_t ftl_keep_trim_word(uint32_t number, uint32_t bits)
{
    return bits | (uint32_t)((~bits ^ (number * 0x9e37u & 0x7fffu)) & 0xffffu)
                      << FTL_KEEP_TRIM_BITS;
}

static inline void ftl_keep_write_trims(struct ftl_keep *keep, uint32_t number,
                                        uint32_t bits)
{
    for (unsigned int i = 0; i < FTL_KEEP_COPIES; i++) {
        __atomic_store_n(&keep->trims[i][number],
                         ftl_keep_trim_word(number, bits), __ATOMIC_RELEASE);
    }
}

/* ---- ftl_keep.c */

/** Set the pointers into config.keep, which begins at `base`; NULL: set none.
 * @return the size of this memory in bytes */
size_t ftl_keep_divide(struct ftl_map_floor *ftl, uint8_t *base);
/** Make the description invalid, so that the next start adopts nothing. */
void ftl_keep_forget(struct ftl_keep *keep);
/** Write the entry of a slot of the write buffer whose contents are complete.
 */
void ftl_keep_accept(struct ftl_map_floor *ftl, uint16_t index);
/** The same for several slots. */
void ftl_keep_accept_all(struct ftl_map_floor *ftl, const uint16_t *slots,
                         uint32_t count);
/** The write after ftl_slot_renew() is complete: replace the old entry. */
void ftl_keep_renewed(struct ftl_map_floor *ftl, uint16_t index);
/** Blocks of a buffer are lost: mark them in its entry, if it has one. */
void ftl_keep_note_lost(struct ftl_map_floor *ftl, uint16_t buffer,
                        uint8_t marks);
/** The contents of a slot of any pool are not needed any longer: clear the
 * entry, if the slot has one. */
void ftl_keep_release(struct ftl_map_floor *ftl, uint16_t index);
/** Note that a logical unit is trimmed.  Call this before ftl_keep_release()
 * for the slots of the unit. */
void ftl_keep_trim(struct ftl_keep *keep, uint32_t number);
/** Clear the entry of a buffer. */
static inline void ftl_keep_clear(struct ftl_keep *keep, uint16_t buffer)
{
    for (unsigned int i = 0; i < FTL_KEEP_COPIES; i++) {
        __atomic_store_n(&keep->entries[i][buffer].check, 0, __ATOMIC_RELEASE);
    }
}
/** The words of a copy of the trim table. */
uint32_t ftl_keep_trim_words(const struct ftl_map_floor *ftl);

#endif
