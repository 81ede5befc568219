/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A checkpoint consists of pieces of 4096 bytes.  They hold a header, a byte
 * for each superblock, the list of planes that have failed, and the map.
 */
#include "storage/ftl/background/background.h"
#include "storage/ftl/background/ftl_checkpoint.h"
#include "storage/ftl/pages/pages.h"
#include "storage/ftl/rows/rows.h"
#include "storage/ftl/space/space.h"

#include <string.h>

#include "lib/bytes.h"

enum {
    ENTRY_LEN = 4,
    PIECE_ENTRIES = FTL_UNIT_DATA / ENTRY_LEN,
    GROUP = 8, /* entries of the map that are looked at together */
};

enum {                          /* the header; little-endian */
       HEADER_MAGIC = 0,        /* 64 bits */
       HEADER_ROW = 8,          /* 64 bits: the number of the checkpoint */
       HEADER_PIECES = 16,      /* 32 bits each from here */
       HEADER_ENTRIES = 20,     /* of the map */
       HEADER_SUPERBLOCKS = 24, /* of the flash */
       HEADER_DIES = 28,
       HEADER_FLAGS = 32,
       HEADER_UNITS = 36, /* logical units of the medium, or 0 */
       HEADER_DEAD = 40,  /* ftl_dead.c; FTL_DEAD_RECORD_LEN bytes */
       HEADER_SCRUB = 80, /* ftl_scrub.c; FTL_SCRUB_RECORD_LEN bytes */
       HEADER_START = 88, /* 32 bits: ftl_marker_start() */

       FLAG_READ_ONLY = 1,
       FLAG_HAS_MARKS = 2, /* units may have marked blocks */
       FLAG_FINAL = 4,     /* checkpoint.is_final */
};

enum { /* the byte of a superblock; 0: it is not closed */
       TABLE_CLOSED = 1,
       TABLE_MOVES_SOON = 2,
};

#define MAGIC UINT64_C(0x31544e494f504b43)

static uint32_t count_pieces(size_t bytes)
{
    return (uint32_t)((bytes + FTL_UNIT_DATA - 1) / FTL_UNIT_DATA);
}

static size_t count_planes(const struct ftl_layout *layout)
{
    return (size_t)layout->superblocks * layout->geometry.dies;
}

/* The number of pieces, and the index of the first piece of each part. */
struct pieces {
    uint32_t table; /* the first one of each */
    uint32_t planes;
    uint32_t map;
    uint32_t all;
};

static struct pieces find_pieces(const struct ftl_background_floor *ftl)
{
    struct pieces at = {.table = 1};

    at.planes = at.table + count_pieces(ftl->layout.superblocks);
    at.map = at.planes + count_pieces(count_planes(&ftl->layout));
    at.all = at.map + count_pieces((size_t)ftl->entries * ENTRY_LEN);
    return at;
}

uint32_t ftl_checkpoint_pieces(const struct ftl_background_floor *ftl)
{
    return find_pieces(ftl).all;
}

static void emit_header(const struct ftl_background_floor *ftl, uint8_t *to)
{
    put_le64(to + HEADER_MAGIC, MAGIC);
    put_le64(to + HEADER_ROW, ftl->checkpoint.row);
    put_le32(to + HEADER_PIECES, find_pieces(ftl).all);
    put_le32(to + HEADER_ENTRIES, ftl->entries);
    put_le32(to + HEADER_SUPERBLOCKS, ftl->layout.superblocks);
    put_le32(to + HEADER_DIES, ftl->layout.geometry.dies);
    put_le32(to + HEADER_UNITS, ftl->config.logical_units);
    put_le32(
        to + HEADER_FLAGS,
        (ftl_health_is_read_only(&ftl->space_floor) ? FLAG_READ_ONLY : 0u) |
            (ftl->has_marks ? FLAG_HAS_MARKS : 0u) |
            (ftl->checkpoint.is_final ? FLAG_FINAL : 0u));
    put_le32(to + HEADER_START, ftl_marker_start(&ftl->rows_floor));
    ftl_dead_emit(&ftl->pages_floor, to + HEADER_DEAD);
    ftl_scrub_emit(&ftl->scrub, to + HEADER_SCRUB);
}

/* Whether it is a header of this array, and of the checkpoint `row`. */
static bool is_header(const struct ftl_layout *layout, const uint8_t *from,
                      uint64_t row)
{
    return get_le64(from + HEADER_MAGIC) == MAGIC &&
           get_le64(from + HEADER_ROW) == row &&
           get_le32(from + HEADER_SUPERBLOCKS) == layout->superblocks &&
           get_le32(from + HEADER_DIES) == layout->geometry.dies;
}

/* Whether the checkpoint is of a medium with this capacity. */
static bool is_header_good(const struct ftl_background_floor *ftl,
                           const uint8_t *from, uint64_t row)
{
    return is_header(&ftl->layout, from, row) &&
           get_le32(from + HEADER_PIECES) == find_pieces(ftl).all &&
           get_le32(from + HEADER_ENTRIES) == ftl->entries;
}

uint32_t ftl_checkpoint_place(const struct ftl_background_floor *ftl,
                              uint32_t entry)
{
    return ftl_is_in_slot(entry) ? ftl->buffer.slots[(uint16_t)entry].old_place
                                 : entry;
}

/* Emit GROUP entries at once.  Hardly any entry is in a slot.  All programs
 * wait until the map is copied.  @return false, and do nothing, if one of them
 * may be in a slot */
static bool emit_group(const uint32_t map[GROUP], uint8_t *to)
{
    /* The compiler writes whole words if it knows that they are aligned. */
    uint8_t *words = __builtin_assume_aligned(to, ENTRY_LEN);

    if (((map[0] | map[1] | map[2] | map[3] | map[4] | map[5] | map[6] |
          map[7]) &
         FTL_IN_SLOT) != 0) {
        return false;
    }
    put_le32(words, map[0]);
    put_le32(words + ENTRY_LEN, map[1]);
    put_le32(words + 2 * ENTRY_LEN, map[2]);
    put_le32(words + 3 * ENTRY_LEN, map[3]);
    put_le32(words + 4 * ENTRY_LEN, map[4]);
    put_le32(words + 5 * ENTRY_LEN, map[5]);
    put_le32(words + 6 * ENTRY_LEN, map[6]);
    put_le32(words + 7 * ENTRY_LEN, map[7]);
    return true;
}

static void emit_map(const struct ftl_background_floor *ftl, uint32_t piece,
                     uint8_t *to)
{
    uint32_t first = piece * PIECE_ENTRIES;
    uint32_t count = MIN((uint32_t)PIECE_ENTRIES, ftl->entries - first);
    const uint32_t *map = ftl->map + first;

    for (uint32_t i = 0; i < count;) {
        uint32_t end = MIN(i + GROUP, count);

        if (end == i + GROUP &&
            emit_group(map + i, to + (size_t)i * ENTRY_LEN)) {
            i = end;
        }
        for (; i < end; i++) {
            put_le32(to + (size_t)i * ENTRY_LEN,
                     ftl_checkpoint_place(ftl, map[i]));
        }
    }
    memset(to + (size_t)count * ENTRY_LEN, 0,
           FTL_UNIT_DATA - (size_t)count * ENTRY_LEN);
}

static void emit_table(const struct ftl_background_floor *ftl, uint32_t piece,
                       uint8_t *to)
{
    uint32_t first = piece * FTL_UNIT_DATA;
    uint32_t count =
        MIN((uint32_t)FTL_UNIT_DATA, ftl->layout.superblocks - first);

    for (uint32_t i = 0; i < count; i++) {
        const struct ftl_superblock *at = &ftl->superblocks[first + i];

        if (at->state == FTL_SUPERBLOCK_CLOSED) {
            to[i] = (uint8_t)(TABLE_CLOSED |
                              (at->moves_soon ? TABLE_MOVES_SOON : 0));
        }
    }
}

void ftl_checkpoint_emit_piece(const struct ftl_background_floor *ftl,
                               uint32_t piece, uint8_t *to)
{
    struct pieces at = find_pieces(ftl);

    if (piece >= at.map) {
        emit_map(ftl, piece - at.map, to);
        return;
    }
    memset(to, 0, FTL_UNIT_DATA);
    if (piece >= at.planes) {
        size_t first = (size_t)(piece - at.planes) * FTL_UNIT_DATA;

        memcpy(to, ftl->failed_planes + first,
               MIN((size_t)FTL_UNIT_DATA, count_planes(&ftl->layout) - first));
    } else if (piece >= at.table) {
        emit_table(ftl, piece - at.table, to);
    } else {
        emit_header(ftl, to);
    }
}

static void copy_part(uint8_t *part, size_t len, uint32_t piece,
                      const uint8_t *from)
{
    size_t first = (size_t)piece * FTL_UNIT_DATA;

    memcpy(part + first, from, MIN((size_t)FTL_UNIT_DATA, len - first));
}

bool ftl_checkpoint_moves_soon(const struct ftl_checkpoint *checkpoint,
                               uint32_t superblock)
{
    return (checkpoint->table[superblock] & TABLE_MOVES_SOON) != 0;
}

void ftl_checkpoint_take_piece(struct ftl_background_floor *ftl, uint32_t piece,
                               const uint8_t *from)
{
    struct ftl_checkpoint *checkpoint = &ftl->checkpoint;
    struct pieces at = find_pieces(ftl);

    if (piece >= at.all ||
        (checkpoint->is_taken[piece / 8] & BIT(piece % 8)) != 0) {
        return;
    }
    checkpoint->is_taken[piece / 8] |= (uint8_t)BIT(piece % 8);
    checkpoint->pieces++;
    if (piece >= at.map) {
        uint32_t first = (piece - at.map) * PIECE_ENTRIES;
        uint32_t count = MIN((uint32_t)PIECE_ENTRIES, ftl->entries - first);

        for (uint32_t i = 0; i < count; i++) {
            ftl->map[first + i] = get_le32(from + (size_t)i * ENTRY_LEN);
        }
    } else if (piece >= at.planes) {
        copy_part(checkpoint->planes, count_planes(&ftl->layout),
                  piece - at.planes, from);
    } else if (piece >= at.table) {
        copy_part(checkpoint->table, ftl->layout.superblocks, piece - at.table,
                  from);
    } else {
        if (is_header(&ftl->layout, from, checkpoint->row)) {
            ftl_capacity_take(ftl, get_le32(from + HEADER_UNITS));
            ftl_dead_take(&ftl->pages_floor, from + HEADER_DEAD);
            ftl_scrub_take(&ftl->scrub, from + HEADER_SCRUB);
        }
        checkpoint->is_header_good = is_header_good(ftl, from, checkpoint->row);
        checkpoint->was_read_only =
            (get_le32(from + HEADER_FLAGS) & FLAG_READ_ONLY) != 0;
        checkpoint->had_marks =
            (get_le32(from + HEADER_FLAGS) & FLAG_HAS_MARKS) != 0;
        checkpoint->is_final =
            (get_le32(from + HEADER_FLAGS) & FLAG_FINAL) != 0;
        checkpoint->start = get_le32(from + HEADER_START);
    }
}
