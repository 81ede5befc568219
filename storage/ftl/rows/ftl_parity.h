/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Parity over dies.
 *
 * A stripe is one wordline of all dies of a superblock.  In each plane of a
 * stripe, the last good die holds parity: the XOR of all other dies, of data,
 * metadata and system bytes.  The dies take turns in being the last one.
 *
 * The parity of a stripe that is not complete is in DRAM, in an accumulator.
 *
 * Reference: docs/decisions/0013-translation-layer.md
 */
#ifndef ESSD_FTL_PARITY_H
#define ESSD_FTL_PARITY_H

#include "storage/ftl/ftl_flash.h"
#include "storage/ftl/base/ftl_layout.h"
#include "storage/ftl/base/ftl_list.h"

struct ftl_rows_floor;
struct ftl_request;
struct ftl_stream;

enum {
    /* For the stripe of each stream, and for stripes whose parity is being
     * programmed. */
    FTL_ACCUMULATORS = 4,
    FTL_RESCUES = 2, /* rows whose units are being rebuilt at the same time */
};

/* The XOR of the rows of a stripe. */
struct ftl_accumulator {
    bool is_used;
    bool is_closed;   /* the stripe takes no more rows */
    uint8_t written;  /* planes whose parity has been put into a row */
    uint8_t begun;    /* planes with a sum of data and metadata; the sum of the
                       * others is zero, but their memory is not set */
    uint8_t odd;      /* planes whose sum is of an odd number of rows */
    uint16_t rows;    /* number of rows in flight that hold its parity */
    uint64_t spoilt;  /* one bit for each unit whose sum is wrong because a word
                       * was lost; the system bytes of its sum are invalid */
    uint32_t stripe;  /* counted over all superblocks */
    uint8_t *members; /* for each die, the planes that are in the sum */
    /* Of the units of a row.  These three follow one another in memory: see
     * ftl_memory_add_row(). */
    uint8_t *data;
    uint8_t *meta;
    uint8_t (*system)[FTL_UNIT_SYSTEM];
};

/* The rebuilding of units of a request, which reads one die after another. */
/* What an attempt takes for a part of the sum. */
enum ftl_rescue_attempt {
    FTL_RESCUE_ALL,  /* everything that is programmed */
    FTL_RESCUE_GOOD, /* the planes that are not bad */
    /* Everything that can be read: a plane may have failed without the mount
     * knowing it yet.  The mount believes the result only if the row number
     * fits. */
    FTL_RESCUE_READABLE,
};

enum {
    FTL_RESCUE_FOUND = 3, /* the row numbers of four may cancel each other */
};

/* No unit of data has this number. */
#define FTL_RESCUE_PARITY UINT32_MAX

struct ftl_rescue {
    uint16_t request; /* or FTL_LIST_END */
    uint16_t next_die;
    uint8_t attempt;          /* enum ftl_rescue_attempt */
    bool has_read_bad_planes; /* in the first attempt */
    bool has_dead;            /* a die of the stripe has not answered */
    bool is_of_scan;          /* only system bytes are rebuilt */
    bool is_of_accumulator;   /* the stripe is not complete on flash */
    bool has_lost_word;       /* a word of the sum was lost */
    uint8_t repeats;     /* attempts that were repeated because of lost words */
    uint64_t begun_us;   /* when it began, if that is traced; or 0 */
    uint64_t row_number; /* of the row, noted or read of another unit; or 0 */
    uint8_t *members;    /* with is_of_accumulator: those of the accumulator */

    /* Of a read of another die that has failed, although the flash may be
     * intact; FTL_FLASH_ERROR if a word was lost in each attempt; or
     * FTL_FLASH_OK. */
    enum ftl_flash_status status;

    /* The request, as it was. */
    uint32_t row;
    struct ftl_flash_op flash;
    struct ftl_flash_unit saved[FTL_OP_UNITS];

    /* The units that are rebuilt. */
    uint16_t num_units;
    uint8_t index[FTL_OP_UNITS];   /* in the row */
    uint8_t entry[FTL_OP_UNITS];   /* the first one of the request */
    uint8_t parity[FTL_OP_UNITS];  /* parity units that were read */
    bool is_used[FTL_OP_UNITS];    /* something of the stripe is programmed */
    bool is_lost[FTL_OP_UNITS];    /* another unit of the stripe is lost, too */
    bool has_erased[FTL_OP_UNITS]; /* another unit is erased, and its plane is
                                    * good */
    /* Units in bad planes of other dies that the first attempt has found
     * erased, so that they are in no sum. */
    uint8_t num_absent[FTL_OP_UNITS];
    /* The numbers of those that it has found there, or FTL_RESCUE_PARITY. */
    uint8_t num_found[FTL_OP_UNITS];
    uint32_t found[FTL_OP_UNITS][FTL_RESCUE_FOUND];
    /* With FTL_RESCUE_READABLE: how many other units were left out. */
    uint8_t num_left_out[FTL_OP_UNITS];
    uint8_t of_entry[FTL_OP_UNITS]; /* the unit that the request reads */
    uint8_t *data, *meta;           /* the sum */
    uint8_t (*system)[FTL_UNIT_SYSTEM];
    uint8_t *read_data, *read_meta; /* units of one die */
    uint8_t (*read_system)[FTL_UNIT_SYSTEM];
};

struct ftl_parity {
    struct ftl_accumulator accumulators[FTL_ACCUMULATORS];
    struct ftl_rescue rescues[FTL_RESCUES];
    struct ftl_list waiting; /* requests that wait for a rescue */
};

/* ---- ftl_parity.c: making parity */

/** The row of a superblock that is the n-th one to be programmed. */
uint32_t ftl_parity_row(const struct ftl_rows_floor *ftl, uint32_t superblock,
                        uint32_t n);
/** The planes of a row in which it holds the parity of its stripe. */
uint8_t ftl_parity_planes(const struct ftl_rows_floor *ftl, uint32_t row);
/**
 * Make sure that there is an accumulator for the stripe of a stream's next row.
 * @return false when all are in use: try again
 */
MUST_USE bool ftl_parity_open(struct ftl_rows_floor *ftl,
                              struct ftl_stream *stream);
/** The stream's stripe takes no more rows. */
void ftl_parity_close(struct ftl_rows_floor *ftl, struct ftl_stream *stream);
/** The superblock of a stream is erased: its stripe needs no parity.  No row of
 * it is in flight. */
void ftl_parity_drop(struct ftl_stream *stream);
/** Fill in the unit `index` of a row with parity. */
void ftl_parity_fill(struct ftl_rows_floor *ftl,
                     const struct ftl_accumulator *accumulator, uint32_t index,
                     struct ftl_flash_unit *unit);
/** A row is about to be programmed: put its units into the sum. */
void ftl_parity_add_row(struct ftl_rows_floor *ftl,
                        struct ftl_accumulator *accumulator,
                        struct ftl_request *request);
/**
 * The program of a row has ended.  If it has failed, take the units that cannot
 * be read back out of the sum: those of the planes that failed, or all of them.
 */
void ftl_parity_row_done(struct ftl_rows_floor *ftl,
                         struct ftl_request *request,
                         enum ftl_flash_status status);
/** The accumulator of a row's stripe, or NULL. */
struct ftl_accumulator *ftl_parity_find(struct ftl_rows_floor *ftl,
                                        uint32_t row);

/** A row was not programmed.  If words of some units were lost after the row
 * was put together, the sum of its stripe is wrong for these units.  Make their
 * system bytes in the sum invalid, so that nothing is rebuilt from it.
 * @param sum  the sum of the stripe */
void ftl_parity_spoil_sum(const struct ftl_layout *layout,
                          const struct ftl_request *request,
                          struct ftl_accumulator *sum);
/** Make sure that nothing is rebuilt from this unit of a sum any more. */
void ftl_parity_spoil_unit(struct ftl_accumulator *sum, uint32_t index);

/* ---- ftl_rescue.c: using it */

/* Whether a plane of another die is bad, or the die dead, and the plane may yet
 * be in the sum: planes that the factory has marked are in no sum, nor are
 * those that were bad when the superblock was opened. */
bool ftl_rescue_is_plane_doubtful(const struct ftl_rows_floor *ftl,
                                  const struct ftl_rescue *rescue, uint32_t die,
                                  uint32_t plane);
/* Whether the row number of the own row has to be read, because two or more
 * units of a stripe may be in the sum or not. */
bool ftl_rescue_needs_row_number(const struct ftl_rows_floor *ftl,
                                 const struct ftl_rescue *rescue);
/* Whether what was read is the sum of all other units of the stripe, as far as
 * can be known.
 * @param system  what has been rebuilt */
bool ftl_rescue_has_right_members(const struct ftl_rows_floor *ftl,
                                  const struct ftl_rescue *rescue,
                                  uint32_t unit,
                                  const struct ftl_system *system);
/* Whether all units have been rebuilt, or were never programmed. */
static inline bool ftl_rescue_is_complete(const struct ftl_rescue *rescue)
{
    for (uint32_t i = 0; i < rescue->num_units; i++) {
        if (rescue->saved[rescue->entry[i]].status != FTL_UNIT_GOOD &&
            (rescue->is_used[i] || rescue->is_lost[i])) {
            return false;
        }
    }
    return true;
}

/* Whether a unit could not be rebuilt although its stripe may have parity. */
static inline bool ftl_rescue_is_stripe_damaged(const struct ftl_rescue *rescue)
{
    for (uint32_t i = 0; i < rescue->num_units; i++) {
        if (rescue->saved[rescue->entry[i]].status != FTL_UNIT_GOOD &&
            (rescue->is_lost[i] ||
             (rescue->has_erased[i] && rescue->parity[i] == 1))) {
            return true;
        }
    }
    return false;
}

/**
 * A read has ended.  If units of it are not good, rebuild them first, which
 * sends the request again.  Then call the kind's read_done().
 * @return whether the request was sent again
 */
bool ftl_rescue_read_done(struct ftl_rows_floor *ftl,
                          struct ftl_request *request,
                          enum ftl_flash_status status);
/** Begin with requests that wait. @return whether there were any */
bool ftl_rescue_step(struct ftl_rows_floor *ftl);

/* ---- The same as the functions of ftl.h that they serve */
bool ftl_parity_is_complete(const struct ftl_rows_floor *ftl);

#endif
