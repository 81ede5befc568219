/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Adopts the write buffer after a reset with power on.
 * Reference: docs/decisions/0016-write-buffer.md
 *
 * The buffer and a description of it are in memory that a reset does not
 * change.  Each buffer of 4096 bytes has an entry, which says of which logical
 * unit it holds the contents.  An entry is written when the contents are
 * complete, and is cleared when they are on flash, trimmed, or replaced.  A
 * write never changes contents that an entry describes.  It goes to the spare
 * buffer, which then takes the place of the old one.  So a reset may come at
 * any instruction.
 *
 * A table has a bit for each unit whose last change was a trim, because entries
 * cannot say this.  If the bit of a unit is set, its entries do not count.  A
 * trim sets the bit before it clears the entries, and a write clears the bit
 * after its entry is complete.
 *
 * After a reset, the flash is mounted first.  Then, before any operation is
 * served, the contents of all entries are put into waiting slots, and all trims
 * are done again.  Valid entries do not change meanwhile, so another reset may
 * come at any time.
 *
 * The entries have check words, which depend on a random number in the head.
 * Each word of the trim table also holds the inverse of its bits.  There are
 * two copies of the entries, the trim table and the head, so that a lost word
 * of DRAM damages only one copy: see ftl_keep_repair.c.  The data has neither a
 * check word nor a copy; the memory's error correction protects it.  If a word
 * of the data is lost, the entry has a mark for the block that contains it: see
 * ftl_damage.c.
 */
#include "storage/ftl/background/background.h"
#include "storage/ftl/background/ftl_keep_repair.h"
#include "storage/ftl/map/ftl_keep.h"
#include "storage/ftl/map/map.h"
#include "storage/ftl/pages/pages.h"
#include "storage/ftl/rows/rows.h"

#include <string.h>

#include "lib/random.h"

/* ---- The memory. */

/* ---- What happens to the buffer. */

/* ---- The start. */

/* Begin to describe an empty buffer. */
static void make_empty(struct ftl_background_floor *ftl)
{
    size_t entries =
        (ftl->config.buffer_units + 1u) * sizeof(struct ftl_keep_entry);

    ftl_keep_forget(&ftl->keep);
    ftl->keep.generation = random_mix(ftl->config.keep_seed);
    ftl->keep.sequence = 0;
    for (unsigned int i = 0; i < FTL_KEEP_COPIES; i++) {
        memset(ftl->keep.entries[i], 0, entries);
    }
    ftl->keep.phase = FTL_KEEP_EMPTIES;
}

uint32_t ftl_keep_empty(struct ftl_background_floor *ftl, uint32_t items)
{
    struct ftl_keep *keep = &ftl->keep;
    uint32_t first = keep->next_word,
             words = ftl_keep_trim_words(&ftl->map_floor);
    uint32_t end = first + MIN(words - first, items);

    if (keep->phase != FTL_KEEP_EMPTIES) {
        return 0;
    }
    for (; keep->next_word < end; keep->next_word++) {
        ftl_keep_write_trims(&ftl->keep, keep->next_word, 0);
    }
    if (end == words) {
        __atomic_signal_fence(__ATOMIC_SEQ_CST);
        ftl_keep_write_heads(ftl);
        keep->phase = FTL_KEEP_IN_USE;
    }
    return end - first;
}

/* Set all lost words of the description to zero, because a hart that reads a
 * lost word cannot continue.  The check words show afterwards which entries are
 * damaged. */
static void clear_lost_words(const struct ftl_background_floor *ftl)
{
    const uint8_t *start = (const uint8_t *)ftl->keep.entries[0];
    const uint8_t *end = ftl->keep.heads + FTL_KEEP_HEADS_LEN;

    if (ftl->config.clear_lost_words != NULL) {
        ftl->config.clear_lost_words(ftl->config.clear_ctx, start,
                                     (size_t)(end - start));
    }
}

void ftl_keep_start(struct ftl_background_floor *ftl)
{
    struct ftl_keep *keep = &ftl->keep;

    keep->spare = ftl->config.buffer_units;
    keep->next_word = 0;
    clear_lost_words(ftl);
    if (!ftl->config.adopts) {
        make_empty(ftl);
    } else if (ftl_keep_find_head(ftl)) {
        keep->phase = FTL_KEEP_ENTRIES;
        for (unsigned int i = 0; i < FTL_LOST_WORDS; i++) {
            if (ftl->config.lost_words[i] != NULL) {
                (void)ftl_damage_note_lost(&ftl->rows_floor,
                                           ftl->config.lost_words[i]);
            }
        }
    } else {
        ftl->adopted.is_refused = ftl_keep_has_any_head(&ftl->keep);
        make_empty(ftl);
    }
}

/* ---- Adoption. */

static bool is_trimmed(struct ftl_background_floor *ftl, uint32_t unit)
{
    return (ftl_keep_repair_trims(ftl, unit / FTL_KEEP_TRIM_BITS) &
            BIT(unit % FTL_KEEP_TRIM_BITS)) != 0;
}

/* Clear what must not be adopted, and find the newest sequence number. */
static void check_entries(struct ftl_background_floor *ftl)
{
    for (uint16_t i = 0; i <= ftl->config.buffer_units; i++) {
        const struct ftl_keep_entry *entry = &ftl->keep.entries[0][i];

        if (!ftl_keep_repair_entry(ftl, i)) {
            ftl_keep_clear(&ftl->keep, i);
            continue;
        }
        ftl->keep.sequence = MAX(ftl->keep.sequence, entry->sequence);
        if (is_trimmed(ftl, ftl_keep_number(entry))) {
            ftl_keep_clear(&ftl->keep, i);
        }
    }
}

/* @return the first buffer of a slot that no entry describes, or the number of
 *         slots if entries describe all of them */
static uint16_t find_unused_buffer(const struct ftl_background_floor *ftl)
{
    uint16_t buffer = 0;

    while (buffer < ftl->config.buffer_units &&
           ftl->keep.entries[0][buffer].check != 0) {
        buffer++;
    }
    return buffer;
}

/* Clear the older one of two entries of the same unit.
 * @return whether there are two such entries */
static bool clear_older_entry(struct ftl_background_floor *ftl)
{
    const struct ftl_keep_entry *entries = ftl->keep.entries[0];

    for (uint16_t i = 1; i <= ftl->config.buffer_units; i++) {
        for (uint16_t j = 0; j < i; j++) {
            if (ftl_keep_number(&entries[i]) == ftl_keep_number(&entries[j])) {
                ftl_keep_clear(&ftl->keep,
                               entries[i].sequence < entries[j].sequence ? i
                                                                         : j);
                return true;
            }
        }
    }
    return false;
}

/*
 * If the last buffer, which no slot has, is in use, give it to a slot whose
 * buffer is not.
 *
 * Entries may describe all buffers: when all slots are in use and a write
 * replaces the contents of one, the new entry is written before the old one is
 * cleared, and the reset may come between the two.  Then the older one of these
 * two entries is cleared now.  If no two entries have the same unit, the memory
 * is damaged, and the entry of the last buffer is dropped.
 */
static void place_spare(struct ftl_background_floor *ftl)
{
    uint16_t last = ftl->config.buffer_units;
    uint16_t unused = find_unused_buffer(ftl);

    if (ftl->keep.entries[0][last].check == 0) {
        return;
    }
    if (unused == last) {
        if (!clear_older_entry(ftl)) {
            ftl->adopted.damaged++;
            ftl_keep_clear(&ftl->keep, last);
        }
        unused = find_unused_buffer(ftl);
    }
    if (unused != last) {
        ftl->buffer.slots[unused].buffer = last;
        ftl->keep.spare = unused;
    }
}

/* Another slot has contents of the same unit already: keep the newer ones. */
static void resolve_two(struct ftl_background_floor *ftl, uint16_t index,
                        uint16_t other)
{
    struct ftl_slot *slot = &ftl->buffer.slots[index];
    struct ftl_slot *first = &ftl->buffer.slots[other];
    uint16_t buffer = slot->buffer;

    if (ftl->keep.entries[0][buffer].sequence >
        ftl->keep.entries[0][first->buffer].sequence) {
        slot->buffer = first->buffer;
        first->buffer = buffer;
    }
    first->marks = ftl_keep_marks(&ftl->keep.entries[0][first->buffer]);
    ftl_keep_clear(&ftl->keep, slot->buffer);
}

/* Put the contents of an entry into the slot that has the entry's buffer. */
static void adopt_slot(struct ftl_background_floor *ftl, uint16_t index)
{
    uint16_t buffer = ftl->buffer.slots[index].buffer;
    const struct ftl_keep_entry *entry = &ftl->keep.entries[0][buffer];
    uint32_t number = ftl_keep_number(entry);
    uint8_t marks = ftl_keep_marks(entry);
    uint32_t at = ftl->map[number];

    ftl->has_marks |= marks != 0;
    if (ftl_is_in_slot(at)) {
        resolve_two(ftl, index, (uint16_t)at);
        return;
    }
    ftl_list_remove(&ftl->buffer.free_slots[FTL_POOL_HOST], index);
    ftl->buffer.slots[index] = (struct ftl_slot){
        .pool = FTL_POOL_HOST,
        .buffer = buffer,
        .follows = FTL_LIST_END,
        .number = number,
        .old_place = at,
        .marks = marks,
    };
    ftl_slot_await(&ftl->map_floor, index);
    ftl->adopted.units++;
}

static void adopt_entries(struct ftl_background_floor *ftl)
{
    check_entries(ftl);
    place_spare(ftl);
    for (uint16_t i = 0; i < ftl->config.buffer_units; i++) {
        if (ftl->keep.entries[0][ftl->buffer.slots[i].buffer].check != 0) {
            adopt_slot(ftl, i);
        }
    }
}

/* @return false when a unit has to wait until trim pages are on flash */
static bool adopt_trims_of_word(struct ftl_background_floor *ftl,
                                uint32_t number)
{
    uint32_t first = number * FTL_KEEP_TRIM_BITS;

    for (uint32_t bits = ftl_keep_repair_trims(ftl, number); bits != 0;
         bits &= bits - 1) {
        uint32_t unit = first + (uint32_t)__builtin_ctz(bits);

        if (unit < ftl->config.logical_units && ftl->map[unit] != FTL_NOWHERE) {
            if (!ftl_trim_unit(&ftl->pages_floor, unit)) {
                return false;
            }
            ftl->adopted.trims++;
        }
    }
    return true;
}

bool ftl_keep_step(struct ftl_background_floor *ftl)
{
    struct ftl_keep *keep = &ftl->keep;
    uint32_t before = keep->next_word;
    uint32_t words = ftl_keep_trim_words(&ftl->map_floor);

    if (keep->phase == FTL_KEEP_IN_USE) {
        return false;
    }
    if (keep->phase == FTL_KEEP_EMPTIES) {
        (void)ftl_keep_empty(ftl, FTL_TURN_ITEMS);
        return true;
    }
    if (keep->phase == FTL_KEEP_ENTRIES) {
        adopt_entries(ftl);
        keep->phase = FTL_KEEP_TRIMS;
    }
    while (keep->next_word < words) {
        if (keep->next_word - before == FTL_TURN_ITEMS) {
            return true;
        }
        if (!adopt_trims_of_word(ftl, keep->next_word)) {
            return keep->next_word != before;
        }
        keep->next_word++;
    }
    keep->phase = FTL_KEEP_IN_USE;
    return true;
}

bool ftl_keep_is_adopting(const struct ftl_background_floor *ftl)
{
    return ftl->keep.phase != FTL_KEEP_IN_USE;
}
