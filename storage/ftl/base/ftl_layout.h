/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where units are on the flash, and what firmware writes beside them.
 *
 * A superblock is the block with the same number in every plane of every die.
 * A row is a wordline of all planes of one die, programmed in one operation.
 * The rows of a superblock are counted in the order in which they are
 * programmed: all dies of wordline 0, then all dies of wordline 1.  A place is
 * the number of a unit of the flash, counted over superblocks, rows, and the
 * units of a row in the order of their transfer.
 */
#ifndef ESSD_FTL_LAYOUT_H
#define ESSD_FTL_LAYOUT_H

#include "storage/ftl/ftl_flash.h"
#include "lib/util.h"

#define FTL_NOWHERE    UINT32_MAX /* a place that does not exist */
#define FTL_PLACES_MAX UINT32_C(0x3fffffff)

/* Where a unit is in its row. */
struct ftl_row_unit {
    uint8_t plane;
    uint8_t page;
    uint8_t unit;
    bool more; /* false: the fields of a struct ftl_flash_unit */
};

struct ftl_layout {
    struct ftl_geometry geometry;
    bool has_parity;
    uint32_t row_units; /* of all planes, 1..FTL_OP_UNITS */
    uint32_t superblock_rows;
    uint32_t superblock_units;
    uint32_t superblocks;
    uint32_t places;
    /* The place of each unit of a row: a look-up is faster than divisions. */
    struct ftl_row_unit units[FTL_OP_UNITS];
};

/** @return false when the flash is too large, or a number is out of range */
MUST_USE bool ftl_layout_init(struct ftl_layout *layout,
                              const struct ftl_geometry *geometry);

static inline uint32_t ftl_place(const struct ftl_layout *layout,
                                 uint32_t superblock, uint32_t row,
                                 uint32_t index)
{
    return (superblock * layout->superblock_rows + row) * layout->row_units +
           index;
}

static inline uint32_t ftl_place_superblock(const struct ftl_layout *layout,
                                            uint32_t place)
{
    return place / layout->superblock_units;
}

/** The row of a place, counted over all superblocks. */
static inline uint32_t ftl_place_row(const struct ftl_layout *layout,
                                     uint32_t place)
{
    return place / layout->row_units;
}

/**
 * Units of a superblock that hold data, if the dies have these bad planes.
 *
 * @param bad_planes  one byte for each die
 * @param has_parity  one die of each stripe holds parity
 */
uint32_t ftl_layout_capacity(const struct ftl_layout *layout,
                             const uint8_t *bad_planes, bool has_parity);

/** The least capacity of a superblock that may be used. */
uint32_t ftl_layout_least_capacity(const struct ftl_layout *layout);

/** Whether a superblock with this capacity may be used. */
bool ftl_layout_is_enough(const struct ftl_layout *layout, uint32_t capacity);

/** Fill in the die, block and wordline of a row. */
static inline void ftl_layout_row(const struct ftl_layout *layout, uint32_t row,
                                  struct ftl_flash_op *op)
{
    uint32_t in_superblock = row % layout->superblock_rows;

    op->block = (uint16_t)(row / layout->superblock_rows);
    op->wordline = (uint16_t)(in_superblock / layout->geometry.dies);
    op->die = (uint16_t)(in_superblock % layout->geometry.dies);
}

/** Fill in plane, page and unit of the unit `index` of a row. */
static inline void ftl_layout_unit(const struct ftl_layout *layout,
                                   uint32_t index, struct ftl_flash_unit *unit)
{
    const struct ftl_row_unit *at = &layout->units[index];

    unit->plane = at->plane;
    unit->page = at->page;
    unit->unit = at->unit;
}

/** The same, for a unit that is not divided into parts. */
static inline void ftl_layout_whole_unit(const struct ftl_layout *layout,
                                         uint32_t index,
                                         struct ftl_flash_unit *unit)
{
    const struct ftl_row_unit *at = &layout->units[index];

    /* The compiler copies these four together. */
    unit->plane = at->plane;
    unit->page = at->page;
    unit->unit = at->unit;
    unit->more = at->more;
}

/** The way back: the index of a unit in its row. */
static inline uint32_t ftl_layout_index(const struct ftl_layout *layout,
                                        const struct ftl_flash_unit *unit)
{
    return ((uint32_t)unit->page * layout->geometry.planes + unit->plane) *
               layout->geometry.units +
           unit->unit;
}

#define FTL_ROW_NUMBER_MAX ((UINT64_C(1) << 36) - 1)

enum { FTL_ATTEMPTS_MAX = 31 };

/* The number of units of a marker (ftl_power.c) has this bit and, in its low
 * bits, the number of the start whose buffer was saved.  The bit between them
 * is 0: in parity it would say that a word of the sum was lost, see
 * ftl_system_is_spoilt(). */
#define FTL_MARKER       UINT32_C(0x80000000)
#define FTL_MARKER_START UINT32_C(0x3fffffff)

/** What a unit is. */
enum ftl_unit_kind {
    FTL_KIND_PAD,        /* nothing: it fills a row */
    FTL_KIND_DATA,       /* data of a host */
    FTL_KIND_TRIM,       /* a page of trim state: ftl_trim.c; or of health */
    FTL_KIND_CHECKPOINT, /* a piece of a checkpoint: ftl_checkpoint.c */
    FTL_KINDS
};

/*
 * The system bytes of a unit.  `version` orders the contents that a logical
 * unit has had: it is the number of the row in which these were programmed
 * first.  `row` is the number of the row in which this copy was programmed:
 * larger, if garbage collection has moved the unit.  Rows are numbered in the
 * order in which they are put together.  `attempt` is larger than in any copy
 * of this version whose row has failed: units of such a row may be readable at
 * one time and not at another.  `marks` are the blocks of 512 bytes that a host
 * has marked as unreadable (MEDIA_WRITE_UNCORRECTABLE).
 */
struct ftl_system {
    uint8_t kind;     /* enum ftl_unit_kind */
    bool is_of_mount; /* the row was programmed before a mount had ended */
    bool is_lost;     /* DATA: the unit has no contents, because they could not
                       * be read when they were to be moved */
    uint32_t number;  /* of the logical unit, or of the page */
    uint64_t version; /* to FTL_ROW_NUMBER_MAX */
    uint64_t row;     /* the same */
    uint8_t attempt;  /* to FTL_ATTEMPTS_MAX */
    uint8_t marks;    /* one bit for each block of 512 bytes */
};

void ftl_system_emit(const struct ftl_system *system,
                     uint8_t buf[FTL_UNIT_SYSTEM]);

/** @return false when the bytes are damaged, are not of this layout, or have
 * values that no row has */
MUST_USE bool ftl_system_parse(struct ftl_system *system,
                               const uint8_t buf[FTL_UNIT_SYSTEM]);

/** Mark system bytes, the XOR of those of other units, as those of parity. */
void ftl_system_mark_parity(uint8_t buf[FTL_UNIT_SYSTEM]);

/** Mark rebuilt system bytes as those of data. */
void ftl_system_mark_data(uint8_t buf[FTL_UNIT_SYSTEM]);

/** Make system bytes of a sum such that no unit can be rebuilt from it: what is
 * rebuilt has a number that no unit has.  A second call undoes the first. */
void ftl_system_spoil(uint8_t buf[FTL_UNIT_SYSTEM]);

bool ftl_system_is_parity(const uint8_t buf[FTL_UNIT_SYSTEM]);

/** Whether they are of parity that was made of a sum with a lost word: no sum
 * of numbers of units and pages has this bit. */
bool ftl_system_is_spoilt(const uint8_t buf[FTL_UNIT_SYSTEM]);

/** Whether they are of the layout without parity, which is not supported. */
bool ftl_system_is_old(const uint8_t buf[FTL_UNIT_SYSTEM]);

#endif
