/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The two copies of the write buffer's description.
 * Reference: docs/decisions/0016-write-buffer.md
 *
 * The first copy is written or cleared before the second one, and a reset may
 * come between the two.  If only one copy is good, it counts:
 *  - The first one is complete and the second one is not: the reset came before
 *    the second one was written.
 *  - The first one is cleared and the second one is not: what the entry
 *    describes is on flash, is trimmed, or has been replaced by a newer entry.
 *    In each case it does no harm that the entry counts once more.
 *  - One of the two is damaged, because a word of it was lost.
 */
#include "storage/ftl/background/ftl_keep_repair.h"
#include "storage/ftl/map/ftl_keep.h"

#include <string.h>

#include "lib/bytes.h"
#include "lib/crc32.h"

enum {
    /* The last head is at the end of the memory, where each firmware finds it.
     */
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
    VERSION = 4,
};
static const uint8_t head_magic[8] = {'E', 'S', 'S', 'D', 'K', 'E', 'E', 'P'};

/* ---- Entries. */

static bool is_good(const struct ftl_background_floor *ftl, uint16_t buffer,
                    const struct ftl_keep_entry *entry)
{
    return entry->check != 0 &&
           entry->check == ftl_keep_check(&ftl->keep, buffer, entry) &&
           ftl_keep_number(entry) < ftl->config.logical_units;
}

bool ftl_keep_repair_entry(struct ftl_background_floor *ftl, uint16_t buffer)
{
    struct ftl_keep_entry *first = &ftl->keep.entries[0][buffer];
    struct ftl_keep_entry *second = &ftl->keep.entries[1][buffer];
    bool is_first_good = is_good(ftl, buffer, first);
    bool is_second_good = is_good(ftl, buffer, second);

    if (is_first_good && is_second_good) {
        /* A reset may have come when only the first one was marked. */
        first->unit |= second->unit;
        second->unit = first->unit;
    } else if (is_first_good) {
        ftl_keep_write_entry(second, first);
        ftl->adopted.repaired++;
    } else if (is_second_good) {
        ftl_keep_write_entry(first, second);
        ftl->adopted.repaired++;
    } else {
        ftl->adopted.damaged += first->check != 0 || second->check != 0;
    }
    return is_first_good || is_second_good;
}

/* ---- Trims. */

static bool is_trim_word_good(uint32_t number, uint32_t word)
{
    return word == ftl_keep_trim_word(number, word & 0xffffu);
}

uint32_t ftl_keep_repair_trims(struct ftl_background_floor *ftl,
                               uint32_t number)
{
    uint32_t first = ftl->keep.trims[0][number];
    uint32_t second = ftl->keep.trims[1][number];

    if (__builtin_expect(first == second && is_trim_word_good(number, first),
                         1)) {
        return first & 0xffffu;
    }
    if (!is_trim_word_good(number, first)) {
        if (is_trim_word_good(number, second)) {
            first = second;
            ftl->adopted.repaired++;
        } else {
            first = 0;
            ftl->adopted.damaged++;
        }
    } else {
        ftl->adopted.repaired++;
    }
    ftl_keep_write_trims(&ftl->keep, number, first & 0xffffu);
    return first & 0xffffu;
}

/* ---- Heads. */

static uint8_t *head_at(const struct ftl_keep *keep, unsigned int copy)
{
    return keep->heads + (size_t)copy * FTL_KEEP_HEAD_LEN;
}

static void emit_head(const struct ftl_background_floor *ftl, uint8_t *head)
{
    memset(head, 0, FTL_KEEP_HEAD_LEN);
    memcpy(head + HEAD_MAGIC, head_magic, sizeof(head_magic));
    put_le32(head + HEAD_VERSION, VERSION);
    put_le64(head + HEAD_GENERATION, ftl->keep.generation);
    put_le32(head + HEAD_UNITS, ftl->config.logical_units);
    put_le32(head + HEAD_BUFFERS, ftl->config.buffer_units);
    put_le32(head + HEAD_SLOTS, ftl->buffer.num_slots);
    put_le32(head + HEAD_CRC, crc32_update(0, head + HEAD_GENERATION,
                                           HEAD_BOOT - HEAD_GENERATION));
}

static uint64_t boot_word(uint32_t boot)
{
    return (uint64_t)~boot << 32 | boot;
}

/*
 * If the previous start has used the memory, replace its number in the head by
 * that of this start.  One instruction does this, so a reset may come at any
 * time.
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

static bool has_magic(const uint8_t *head)
{
    return memcmp(head, head_magic, sizeof(head_magic)) == 0;
}

void ftl_count_start(void *end, uint32_t boot)
{
    uint8_t *heads = (uint8_t *)end - (uintptr_t)end % FTL_KEEP_HEAD_LEN -
                     FTL_KEEP_HEADS_LEN;

    for (unsigned int i = 0; i < FTL_KEEP_COPIES; i++) {
        uint8_t *head = heads + (size_t)i * FTL_KEEP_HEAD_LEN;

        if (has_magic(head)) {
            (void)continue_head(head, boot);
        }
    }
}

static void write_head(struct ftl_background_floor *ftl, uint8_t *head)
{
    uint64_t boot = boot_word(ftl->config.boot);

    emit_head(ftl, head);
    memcpy(head + HEAD_BOOT, &boot, sizeof(boot));
}

void ftl_keep_write_heads(struct ftl_background_floor *ftl)
{
    for (unsigned int i = 0; i < FTL_KEEP_COPIES; i++) {
        write_head(ftl, head_at(&ftl->keep, i));
        __atomic_signal_fence(__ATOMIC_SEQ_CST);
    }
}

static bool is_ours(struct ftl_background_floor *ftl, uint8_t *head)
{
    uint8_t expected[FTL_KEEP_HEAD_LEN];

    ftl->keep.generation = get_le64(head + HEAD_GENERATION);
    emit_head(ftl, expected);
    return memcmp(head, expected, HEAD_BOOT) == 0 &&
           continue_head(head, ftl->config.boot);
}

bool ftl_keep_find_head(struct ftl_background_floor *ftl)
{
    for (unsigned int i = 0; i < FTL_KEEP_COPIES; i++) {
        uint8_t *other = head_at(&ftl->keep, FTL_KEEP_COPIES - 1 - i);

        if (is_ours(ftl, head_at(&ftl->keep, i))) {
            if (memcmp(head_at(&ftl->keep, i), other, FTL_KEEP_HEAD_LEN) != 0) {
                write_head(ftl, other);
            }
            return true;
        }
    }
    return false;
}

bool ftl_keep_has_any_head(const struct ftl_keep *keep)
{
    return has_magic(head_at(keep, 0)) || has_magic(head_at(keep, 1));
}
