/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Describes the write buffer in memory that a reset does not change, while it
 * is in use: see ftl_adopt.c.
 */
#include "storage/ftl/map/ftl_keep.h"

#include <string.h>

enum { MEMORY_ALIGN = 64 };

uint32_t ftl_keep_trim_words(const struct ftl_map_floor *ftl)
{
    return (ftl->config.logical_units + FTL_KEEP_TRIM_BITS - 1) /
           FTL_KEEP_TRIM_BITS;
}

static size_t align_bytes(size_t len)
{
    return (len + MEMORY_ALIGN - 1) & ~(size_t)(MEMORY_ALIGN - 1);
}

size_t ftl_keep_divide(struct ftl_map_floor *ftl, uint8_t *base)
{
    size_t buffers = (size_t)ftl->buffer.num_slots + 1;
    size_t data = buffers * FTL_UNIT_DATA;
    size_t meta = buffers * FTL_UNIT_META;
    size_t entries = align_bytes((ftl->config.buffer_units + 1u) *
                                 sizeof(struct ftl_keep_entry));
    size_t trims = align_bytes(ftl_keep_trim_words(ftl) * sizeof(uint32_t));

    if (base != NULL) {
        uint8_t *at = base + data + meta;

        ftl->buffer.data = base;
        ftl->buffer.meta = base + data;
        ftl->keep.entries[0] = (void *)at;
        ftl->keep.entries[1] = (void *)(at + entries);
        ftl->keep.trims[0] = (void *)(at + 2 * entries);
        ftl->keep.trims[1] = (void *)(at + 2 * entries + trims);
        ftl->keep.heads = at + 2 * (entries + trims);
    }
    return data + meta + 2 * (entries + trims) + FTL_KEEP_HEADS_LEN;
}

static inline void set_trim(struct ftl_keep *keep, uint32_t unit, bool is_set)
{
    uint32_t number = unit / FTL_KEEP_TRIM_BITS;
    uint32_t bit = (uint32_t)BIT(unit % FTL_KEEP_TRIM_BITS);
    uint32_t bits = keep->trims[0][number] & 0xffffu;

    if (((bits & bit) != 0) != is_set) {
        ftl_keep_write_trims(keep, number, bits ^ bit);
    }
}

/*
 * @param keep      a copy of ftl.keep whose `sequence` becomes larger
 * @param no_trims  number of a word of the trim table without bits; changed
 */
static inline void accept_slot(struct ftl_keep *keep,
                               const struct ftl_slot *slot, uint32_t *no_trims)
{
    uint16_t buffer = slot->buffer;
    uint32_t number = slot->number;
    struct ftl_keep_entry entry = {
        .sequence = ++keep->sequence,
        .unit = ftl_keep_unit(number, slot->marks),
    };

    entry.check = ftl_keep_check(keep, buffer, &entry);
    for (unsigned int i = 0; i < FTL_KEEP_COPIES; i++) {
        ftl_keep_write_entry(&keep->entries[i][buffer], &entry);
    }
    if (number / FTL_KEEP_TRIM_BITS != *no_trims) {
        set_trim(keep, number, false);
        *no_trims = (keep->trims[0][number / FTL_KEEP_TRIM_BITS] & 0xffffu) == 0
                        ? number / FTL_KEEP_TRIM_BITS
                        : UINT32_MAX;
    }
}

void ftl_keep_accept_all(struct ftl_map_floor *ftl, const uint16_t *slots,
                         uint32_t count)
{
    const struct ftl_slot *first = ftl->buffer.slots;
    /* With a copy, the compiler knows that stores to entries change nothing of
     * it. */
    struct ftl_keep keep = ftl->keep;
    uint32_t no_trims = UINT32_MAX;

    for (uint32_t i = 0; i < count; i++) {
        accept_slot(&keep, &first[slots[i]], &no_trims);
    }
    ftl->keep.sequence = keep.sequence;
}

void ftl_keep_accept(struct ftl_map_floor *ftl, uint16_t index)
{
    ftl_keep_accept_all(ftl, &index, 1);
}

void ftl_keep_note_lost(struct ftl_map_floor *ftl, uint16_t buffer,
                        uint8_t marks)
{
    if (buffer <= ftl->config.buffer_units) {
        for (unsigned int i = 0; i < FTL_KEEP_COPIES; i++) {
            ftl->keep.entries[i][buffer].unit |= (uint64_t)marks
                                                 << FTL_KEEP_LOST_SHIFT;
        }
        __atomic_signal_fence(__ATOMIC_SEQ_CST);
    }
}

void ftl_keep_renewed(struct ftl_map_floor *ftl, uint16_t index)
{
    ftl_keep_accept(ftl, index);
    ftl_keep_clear(&ftl->keep, ftl->keep.spare);
}

void ftl_keep_release(struct ftl_map_floor *ftl, uint16_t index)
{
    const struct ftl_slot *slot = &ftl->buffer.slots[index];

    if (slot->pool == FTL_POOL_HOST) {
        ftl_keep_clear(&ftl->keep, slot->buffer);
    }
}

void ftl_keep_trim(struct ftl_keep *keep, uint32_t number)
{
    set_trim(keep, number, true);
}

void ftl_keep_forget(struct ftl_keep *keep)
{
    memset(keep->heads, 0, FTL_KEEP_HEADS_LEN);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
}
