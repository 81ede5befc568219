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
 * The words of the trim table have an inverse.  The data has no check word; the
 * memory's error correction protects it.  If a word of the data is lost, the
 * entry has a mark for the block that contains it: see ftl_damage.c.
 */
#include "firmware/ftl/ftl_memory.h"

#include <string.h>

#include "lib/bytes.h"
#include "lib/crc32.h"
#include "lib/random.h"

enum {
    MEMORY_ALIGN = 64,
    TRIM_BITS = 16, /* units in a word of trims; the other bits are a check */

    /* The head is at the end of the memory, where each firmware finds it. */
    HEAD_MAGIC = 0,
    HEAD_VERSION = 8, /* of the layout of this memory: 32 bits */
    HEAD_CRC = 12,    /* of all from here to HEAD_BOOT */
    HEAD_GENERATION = 16,
    HEAD_UNITS = 24,
    HEAD_BUFFERS = 28,
    HEAD_SLOTS = 32,
    /* The number of the start that has used this memory last, and its inverse:
     * 64 bits, in the byte order of the hart. */
    HEAD_BOOT = 56,
    HEAD_LEN = 64,
    VERSION = 3,

    LOST_SHIFT = 8, /* of the marks of lost blocks in ftl_keep_entry.marks */
};
static const uint8_t head_magic[8] = {'E', 'S', 'S', 'D', 'K', 'E', 'E', 'P'};

/* An entry.  If its check word is wrong, it describes nothing. */
struct ftl_keep_entry {
    uint64_t check;
    uint64_t sequence; /* of two entries of a unit, the larger one counts */
    uint32_t number;   /* of the logical unit */
    /* The marks of the slot.  Above LOST_SHIFT: blocks whose contents were lost
     * after the entry was written; the check word does not cover these. */
    uint32_t marks;
};

/* ---- The memory. */

static uint32_t trim_words(const struct ftl *ftl)
{
    return (ftl->config.logical_units + TRIM_BITS - 1) / TRIM_BITS;
}

static size_t align_bytes(size_t len)
{
    return (len + MEMORY_ALIGN - 1) & ~(size_t)(MEMORY_ALIGN - 1);
}

size_t ftl_keep_divide(struct ftl *ftl, uint8_t *base)
{
    size_t buffers = (size_t)ftl->num_slots + 1;
    size_t data = buffers * FTL_UNIT_DATA;
    size_t meta = buffers * FTL_UNIT_META;
    size_t entries = align_bytes((ftl->config.buffer_units + 1u) *
                                 sizeof(struct ftl_keep_entry));
    size_t trims = align_bytes(trim_words(ftl) * sizeof(uint32_t));

    if (base != NULL) {
        ftl->data = base;
        ftl->meta = base + data;
        ftl->keep.entries = (void *)(base + data + meta);
        ftl->keep.trims = (void *)(base + data + meta + entries);
        ftl->keep.head = base + data + meta + entries + trims;
    }
    return data + meta + entries + trims + HEAD_LEN;
}

/* ---- Check words. */

static uint64_t entry_check(const struct ftl *ftl, uint16_t buffer,
                            const struct ftl_keep_entry *entry)
{
    uint64_t place = (uint64_t)(uint8_t)entry->marks << 48 |
                     (uint64_t)buffer << 32 | entry->number;
    uint64_t check =
        random_mix(random_mix(ftl->keep.generation + entry->sequence) ^ place);

    return check != 0 ? check : 1;
}

static bool entry_is_good(const struct ftl *ftl, uint16_t buffer)
{
    const struct ftl_keep_entry *entry = &ftl->keep.entries[buffer];

    return entry->check == entry_check(ftl, buffer, entry) &&
           entry->number < ftl->config.logical_units;
}

/* The blocks of an entry that must not be read. */
static uint8_t entry_marks(const struct ftl_keep_entry *entry)
{
    return (uint8_t)(entry->marks | entry->marks >> LOST_SHIFT);
}

/* The upper half of a word of trims is the inverse of the lower half, changed
 * by the word's number. */
static uint32_t trim_word(uint32_t number, uint32_t bits)
{
    return bits | (uint32_t)((~bits ^ number * 0x9e37u) & 0xffffu) << TRIM_BITS;
}

static bool trim_word_is_good(const struct ftl *ftl, uint32_t number)
{
    uint32_t word = ftl->keep.trims[number];

    return word == trim_word(number, word & 0xffffu);
}

static bool is_trimmed(const struct ftl *ftl, uint32_t unit)
{
    uint32_t number = unit / TRIM_BITS;

    return trim_word_is_good(ftl, number) &&
           (ftl->keep.trims[number] & BIT(unit % TRIM_BITS)) != 0;
}

/* ---- What happens to the buffer. */

static void clear_entry(struct ftl *ftl, uint16_t buffer)
{
    __atomic_store_n(&ftl->keep.entries[buffer].check, 0, __ATOMIC_RELEASE);
}

static void set_trim(struct ftl *ftl, uint32_t unit, bool is_set)
{
    uint32_t number = unit / TRIM_BITS;
    uint32_t bit = (uint32_t)BIT(unit % TRIM_BITS);
    uint32_t bits = ftl->keep.trims[number] & 0xffffu;

    if (((bits & bit) != 0) != is_set) {
        __atomic_store_n(&ftl->keep.trims[number],
                         trim_word(number, bits ^ bit), __ATOMIC_RELEASE);
    }
}

void ftl_keep_accept(struct ftl *ftl, uint16_t index)
{
    const struct ftl_slot *slot = &ftl->slots[index];
    struct ftl_keep_entry *entry = &ftl->keep.entries[slot->buffer];

    entry->number = slot->number;
    entry->marks = slot->marks;
    entry->sequence = ++ftl->keep.sequence;
    __atomic_store_n(&entry->check, entry_check(ftl, slot->buffer, entry),
                     __ATOMIC_RELEASE);
    set_trim(ftl, slot->number, false);
}

void ftl_keep_renew(struct ftl *ftl, uint16_t index, bool keeps_data)
{
    struct ftl_slot *slot = &ftl->slots[index];
    uint16_t before = slot->buffer;
    const uint8_t *data = ftl_slot_data(ftl, index);
    const uint8_t *meta = ftl_slot_meta(ftl, index);

    slot->buffer = ftl->keep.spare;
    ftl->keep.spare = before;
    memcpy(ftl_slot_meta(ftl, index), meta, FTL_UNIT_META);
    if (keeps_data) {
        ftl_memory_move(ftl, FTL_MOVE_COPY, ftl_slot_data(ftl, index), data,
                        FTL_UNIT_DATA);
        ftl_memory_run(ftl); /* If a word is lost, its block is marked now. */
    }
}

void ftl_keep_note_lost(struct ftl *ftl, uint16_t buffer, uint8_t marks)
{
    if (buffer <= ftl->config.buffer_units) {
        ftl->keep.entries[buffer].marks |= (uint32_t)marks << LOST_SHIFT;
        __atomic_signal_fence(__ATOMIC_SEQ_CST);
    }
}

void ftl_keep_renewed(struct ftl *ftl, uint16_t index)
{
    ftl_keep_accept(ftl, index);
    clear_entry(ftl, ftl->keep.spare);
}

void ftl_keep_release(struct ftl *ftl, uint16_t index)
{
    const struct ftl_slot *slot = &ftl->slots[index];

    if (slot->pool == FTL_POOL_HOST) {
        clear_entry(ftl, slot->buffer);
    }
}

void ftl_keep_trim(struct ftl *ftl, uint32_t number)
{
    set_trim(ftl, number, true);
}

/* ---- The start. */

static void emit_head(const struct ftl *ftl, uint8_t *head)
{
    memset(head, 0, HEAD_LEN);
    memcpy(head + HEAD_MAGIC, head_magic, sizeof(head_magic));
    put_le32(head + HEAD_VERSION, VERSION);
    put_le64(head + HEAD_GENERATION, ftl->keep.generation);
    put_le32(head + HEAD_UNITS, ftl->config.logical_units);
    put_le32(head + HEAD_BUFFERS, ftl->config.buffer_units);
    put_le32(head + HEAD_SLOTS, ftl->num_slots);
    put_le32(head + HEAD_CRC, crc32_update(0, head + HEAD_GENERATION,
                                           HEAD_BOOT - HEAD_GENERATION));
}

static uint64_t boot_word(uint32_t boot)
{
    return (uint64_t)~boot << 32 | boot;
}

/*
 * This start uses the memory from now on, if the start before has done so.  The
 * number is replaced by one instruction, so that a reset may come at any time.
 * @return whether this start, or the one before, has used it last
 */
static bool continue_head(uint8_t *head, uint32_t boot)
{
    uint64_t *word = (void *)(head + HEAD_BOOT);

    if (*word != boot_word(boot) && *word != boot_word(boot - 1)) {
        return false;
    }
    __atomic_store_n(word, boot_word(boot), __ATOMIC_RELEASE);
    return true;
}

void ftl_count_start(void *end, uint32_t boot)
{
    uint8_t *head = (uint8_t *)end - (uintptr_t)end % MEMORY_ALIGN - HEAD_LEN;

    if (memcmp(head, head_magic, sizeof(head_magic)) == 0) {
        (void)continue_head(head, boot);
    }
}

void ftl_keep_forget(struct ftl *ftl)
{
    memset(ftl->keep.head, 0, HEAD_LEN);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
}

/* Describe an empty buffer. */
static void make_empty(struct ftl *ftl)
{
    uint32_t words = trim_words(ftl);
    uint64_t boot = boot_word(ftl->config.boot);

    ftl_keep_forget(ftl);
    ftl->keep.generation = random_mix(ftl->config.keep_seed);
    ftl->keep.sequence = 0;
    memset(ftl->keep.entries, 0,
           (ftl->config.buffer_units + 1u) * sizeof(ftl->keep.entries[0]));
    for (uint32_t i = 0; i < words; i++) {
        ftl->keep.trims[i] = trim_word(i, 0);
    }
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    emit_head(ftl, ftl->keep.head);
    memcpy(ftl->keep.head + HEAD_BOOT, &boot, sizeof(boot));
}

/*
 * Whether the start before has left a buffer with the sizes of this one.  If
 * firmware that does not know this memory has run since then, hosts may have
 * replaced what the buffer holds.
 */
static bool is_ours(struct ftl *ftl)
{
    uint8_t expected[HEAD_LEN];

    ftl->keep.generation = get_le64(ftl->keep.head + HEAD_GENERATION);
    emit_head(ftl, expected);
    return memcmp(ftl->keep.head, expected, HEAD_BOOT) == 0 &&
           continue_head(ftl->keep.head, ftl->config.boot);
}

void ftl_keep_start(struct ftl *ftl)
{
    struct ftl_keep *keep = &ftl->keep;

    keep->spare = ftl->config.buffer_units;
    keep->next_word = 0;
    keep->phase = FTL_KEEP_IN_USE;
    if (!ftl->config.adopts) {
        make_empty(ftl);
    } else if (is_ours(ftl)) {
        keep->phase = FTL_KEEP_ENTRIES;
        if (ftl->config.lost_word != NULL) {
            (void)ftl_note_lost_word(ftl, ftl->config.lost_word);
        }
    } else {
        ftl->adopted.is_refused =
            memcmp(keep->head, head_magic, sizeof(head_magic)) == 0;
        make_empty(ftl);
    }
}

/* ---- Adoption. */

/* Clear what must not be adopted, and find the newest sequence number. */
static void check_entries(struct ftl *ftl)
{
    for (uint16_t i = 0; i <= ftl->config.buffer_units; i++) {
        const struct ftl_keep_entry *entry = &ftl->keep.entries[i];

        if (entry->check == 0) {
            continue;
        }
        if (!entry_is_good(ftl, i)) {
            ftl->adopted.damaged++;
            clear_entry(ftl, i);
            continue;
        }
        ftl->keep.sequence = MAX(ftl->keep.sequence, entry->sequence);
        if (is_trimmed(ftl, entry->number)) {
            clear_entry(ftl, i);
        }
    }
}

/*
 * If the last buffer, which no slot has, is in use, give it to a slot whose
 * buffer is not.  If entries describe all buffers, the memory is damaged: drop
 * the entry of the last one.
 */
static void place_spare(struct ftl *ftl)
{
    uint16_t last = ftl->config.buffer_units;

    if (ftl->keep.entries[last].check == 0) {
        return;
    }
    for (uint16_t i = 0; i < last; i++) {
        if (ftl->keep.entries[i].check == 0) {
            ftl->slots[i].buffer = last;
            ftl->keep.spare = i;
            return;
        }
    }
    ftl->adopted.damaged++;
    clear_entry(ftl, last);
}

/* Another slot has contents of the same unit already: keep the newer ones. */
static void resolve_two(struct ftl *ftl, uint16_t index, uint16_t other)
{
    struct ftl_slot *slot = &ftl->slots[index];
    struct ftl_slot *first = &ftl->slots[other];
    uint16_t buffer = slot->buffer;

    if (ftl->keep.entries[buffer].sequence >
        ftl->keep.entries[first->buffer].sequence) {
        slot->buffer = first->buffer;
        first->buffer = buffer;
    }
    first->marks = entry_marks(&ftl->keep.entries[first->buffer]);
    clear_entry(ftl, slot->buffer);
}

/* Put the contents of an entry into the slot that has the entry's buffer. */
static void adopt_slot(struct ftl *ftl, uint16_t index)
{
    uint16_t buffer = ftl->slots[index].buffer;
    uint32_t number = ftl->keep.entries[buffer].number;
    uint8_t marks = entry_marks(&ftl->keep.entries[buffer]);
    uint32_t at = ftl->map[number];

    ftl->has_marks |= marks != 0;
    if (ftl_is_in_slot(at)) {
        resolve_two(ftl, index, (uint16_t)at);
        return;
    }
    ftl_list_remove(&ftl->free_slots[FTL_POOL_HOST], index);
    ftl->slots[index] = (struct ftl_slot){
        .pool = FTL_POOL_HOST,
        .buffer = buffer,
        .follows = FTL_LIST_END,
        .number = number,
        .old_place = at,
        .marks = marks,
    };
    ftl_slot_await(ftl, index);
    ftl->adopted.units++;
}

static void adopt_entries(struct ftl *ftl)
{
    check_entries(ftl);
    place_spare(ftl);
    for (uint16_t i = 0; i < ftl->config.buffer_units; i++) {
        if (ftl->keep.entries[ftl->slots[i].buffer].check != 0) {
            adopt_slot(ftl, i);
        }
    }
}

/* @return false when a unit has to wait until trim pages are on flash */
static bool adopt_trims_of_word(struct ftl *ftl, uint32_t number)
{
    uint32_t first = number * TRIM_BITS;

    if (!trim_word_is_good(ftl, number)) {
        ftl->adopted.damaged++;
        ftl->keep.trims[number] = trim_word(number, 0);
    }
    for (uint32_t bits = ftl->keep.trims[number] & 0xffffu; bits != 0;
         bits &= bits - 1) {
        uint32_t unit = first + (uint32_t)__builtin_ctz(bits);

        if (unit < ftl->config.logical_units && ftl->map[unit] != FTL_NOWHERE) {
            if (!ftl_io_trim_unit(ftl, unit)) {
                return false;
            }
            ftl->adopted.trims++;
        }
    }
    return true;
}

bool ftl_keep_step(struct ftl *ftl)
{
    struct ftl_keep *keep = &ftl->keep;
    uint32_t before = keep->next_word;

    if (keep->phase == FTL_KEEP_IN_USE) {
        return false;
    }
    if (keep->phase == FTL_KEEP_ENTRIES) {
        adopt_entries(ftl);
        keep->phase = FTL_KEEP_TRIMS;
    }
    while (keep->next_word < trim_words(ftl)) {
        if (!adopt_trims_of_word(ftl, keep->next_word)) {
            return keep->next_word != before;
        }
        keep->next_word++;
    }
    keep->phase = FTL_KEEP_IN_USE;
    return true;
}

bool ftl_is_adopting(const struct ftl *ftl)
{
    return ftl->keep.phase != FTL_KEEP_IN_USE;
}

const struct ftl_adopted *ftl_adopted(const struct ftl *ftl)
{
    return &ftl->adopted;
}
