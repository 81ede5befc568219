/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The flash translation layer: a medium of 512-byte blocks on NAND flash.
 *
 * It maps logical units of 4096 bytes to units of the flash, collects writes in
 * a buffer in DRAM, and programs them in rows: one wordline of all planes of a
 * die.  A row is programmed when the buffer holds enough for it, when a flush
 * or a write with FUA waits for it, or when the buffer has been left alone for
 * a while.
 *
 * After a power cut, ftl_start() finds everything again by reading what
 * firmware wrote beside the data.  Then every block has the contents of the
 * last write that was made durable, or of a later one; never a part of one.
 *
 * Reference: docs/decisions/0013-translation-layer.md
 */
#ifndef ESSD_FTL_FTL_H
#define ESSD_FTL_FTL_H

#include "storage/ftl/ftl_flash.h"
#include "lib/trace.h"
#include "lib/util.h"
#include "storage/block/media.h"

struct ftl;

/* Words that may have been lost before a reset: see ftl_config.lost_words. */
enum { FTL_LOST_WORDS = 2 };

struct ftl_config {
    struct ftl_flash flash;
    struct ftl_geometry geometry;

    /*
     * Planes that must not be used: for each block, a byte for each die with a
     * bit for each plane.  It is copied.
     */
    const uint8_t *bad_planes;

    /* Logical units of 4096 bytes; see ftl_space(). */
    uint32_t logical_units;
    /*
     * The bad planes of a die are not known, so logical_units is only an upper
     * limit.  The mount finds the capacity on the flash: see ftl_capacity().
     */
    bool is_capacity_estimated;
    bool records_capacity; /* write a page with the capacity after the mount if
                            * the flash has none yet */
    uint16_t buffer_units; /* of the write buffer: two rows or more */
    uint16_t num_ops;      /* operations of the medium in progress, at most */
    uint16_t num_requests; /* operations of the flash in progress, at most */
    /* How many logical units a trim looks at in one step; 0: 4096.  Other
     * operations go on between the steps of a trim. */
    uint32_t trims_per_step;
    /* A checkpoint is written when so many superblocks have been opened since
     * the last one; 0: never. */
    uint16_t checkpoint_superblocks;
    uint32_t
        idle_us; /* without a write, after which the buffer is programmed */
    /* Names of policies (ftl_policies.h), which must stay valid: how garbage
     * collection chooses a victim, "cost-benefit" or "greedy"; when wear
     * levelling moves a superblock, "spread" or "never"; and which streams take
     * what is moved, "by-source" or "by-cause".  NULL: the first one of
     * these. */
    const char *victims;
    const char *levelling;
    const char *streams;
    /* "spread": when erase counts differ by more, the superblock with the
     * smallest one is moved. */
    uint32_t wear_spread;
    /* A unit is moved if a read finds more wrong bits in it, or needs soft
     * decoding; 0: no unit is moved for this reason. */
    uint16_t reclaim_bits;
    uint64_t scrub_us; /* time between the rows that scrubbing reads; 0: none */
    /* A superblock is erased as soon as nothing in it is valid, not only when
     * space is needed. */
    bool erases_early;
    /* A die takes the data of a row while it programs the one before it.  If
     * that one fails, the later one ends with FTL_FLASH_ABORTED. */
    bool queues_rows;

    void *memory; /* ftl_bytes(), 64-byte aligned, reached by DMA */

    /*
     * Memory for the write buffer: ftl_keep_bytes(), 64-byte aligned, reached
     * by DMA.  If a reset does not change this memory, and the end of the
     * memory has the same address at the next start, that start adopts the
     * buffer.
     */
    void *keep;
    bool adopts; /* a reset that has kept `keep` led to this start */
    /* Words of DRAM that were lost before the reset, or NULL.  The panic may
     * have set them to zero.  They may also be outside `keep`. */
    const uint8_t *lost_words[FTL_LOST_WORDS];
    /* Set the lost words among the `len` bytes at `memory` to zero.  NULL: no
     * word is ever lost. */
    void (*clear_lost_words)(void *ctx, const void *memory, size_t len);
    void *clear_ctx;
    uint64_t keep_seed; /* a random number, another one at every start */
    /* The number of this start: one more than that of the last start.  It is
     * always the same if the drive does not count its starts.  0: this is not a
     * drive but a program, in whose writes hosts have no part. */
    uint32_t boot;

    const struct trace *trace; /* outlives the layer; NULL: no events */
};

enum ftl_state {
    FTL_MOUNTING, /* Reads the flash; operations wait. */
    FTL_READY,    /* Serves operations: see ftl_is_read_only(). */
    FTL_FAILED,   /* The map could not be read: operations are refused. */
    FTL_WIPING,   /* Erases all blocks: operations are refused. */
};

/* Why the map could not be read. */
enum ftl_failure {
    FTL_FAILURE_NONE,
    FTL_FAILURE_FLASH,      /* The flash does not answer, or has no space. */
    FTL_FAILURE_CAPACITY,   /* It was written with another capacity. */
    FTL_FAILURE_OLD_LAYOUT, /* It was written by firmware without parity. */
};

/* What has been done since the start. */
struct ftl_counters {
    uint64_t host_units;     /* accepted from writes */
    uint64_t rows;           /* programmed */
    uint64_t units;          /* programmed, without padding */
    uint64_t pad_units;      /* programmed because a row was not full */
    uint64_t moved_units;    /* programmed by garbage collection */
    uint64_t map_pages;      /* pages of trim state, programmed */
    uint64_t erasures;       /* of superblocks */
    uint64_t scanned_rows;   /* read at the start */
    uint64_t checkpoints;    /* written */
    uint64_t program_errors; /* programs of rows that have failed */
    uint64_t erase_errors;
    uint64_t read_errors;   /* units that could not be read */
    uint64_t parity_units;  /* programmed */
    uint64_t levelled;      /* superblocks that were moved to level wear */
    uint64_t scrubbed_rows; /* read to find out how good they are */
    uint64_t reclaimed;     /* superblocks moved because they were weak */
    uint64_t rebuilt_units; /* from parity, because they could not be read */
    uint64_t lost_units;    /* whose contents are lost: docs/decisions/0013 */
};

/** Bytes of memory for these sizes. */
size_t ftl_bytes(const struct ftl_config *config);

/** The size of the memory for config->keep: a multiple of 64. */
size_t ftl_keep_bytes(const struct ftl_config *config);

/** The most logical units that leave garbage collection enough space to work.
 */
uint32_t ftl_most_units(const struct ftl_config *config);

/**
 * The largest number of units of the write buffer for which there is always
 * space when the power fails.  They fit into one superblock of the least
 * capacity that a superblock in use may have.
 *
 * @return less than two rows when this flash is too small for a write buffer
 *         that is saved
 */
uint32_t ftl_most_saved_units(const struct ftl_config *config);

enum {
    /*
     * The default spare: drives for read-intensive use have it, because they
     * have 1024^3 bytes of flash for each 10^9 bytes of capacity.
     */
    FTL_SPARE_PERCENT = 7,
    FTL_SPARE_PERCENT_MAX = 400,
};

/**
 * The number of logical units of a drive with this flash.  It is at most
 * ftl_most_units(), and rounded down to whole MiB.
 *
 * Only the geometry and the bad planes of the configuration are used.  If all
 * dies answer, the result is the same at every start of the same array.  If a
 * die does not answer, its bad blocks are not known, and the result may be too
 * large.
 *
 * @param spare_percent  over-provisioning: how many units the good blocks have
 *                       in addition to the logical ones and to parity, as a
 *                       percentage of the logical ones;
 *                       FTL_SPARE_PERCENT..FTL_SPARE_PERCENT_MAX.  The larger
 *                       it is, the less garbage collection costs.
 */
uint32_t ftl_space(const struct ftl_config *config, uint32_t spare_percent);

/**
 * Whether a checkpoint of the map of config->logical_units fits into every
 * superblock that may be used.  If it does not, no checkpoint is ever complete,
 * and each start reads the system bytes of all rows.
 *
 * Only the geometry and logical_units of the configuration are used.
 */
bool ftl_checkpoint_fits(const struct ftl_config *config);

/** Blocks of all planes that are not marked as bad in the configuration. */
uint32_t ftl_good_blocks(const struct ftl_config *config);

/**
 * Initialise, in config->memory, and begin to mount: read what is on the flash.
 * A flash that was never programmed is an empty medium.
 *
 * @return NULL when the sizes of `config` do not fit together
 */
MUST_USE struct ftl *ftl_start(const struct ftl_config *config);

enum ftl_state ftl_state(const struct ftl *ftl);
/** Why the state is FTL_FAILED. */
enum ftl_failure ftl_failure(const struct ftl *ftl);

/**
 * Start an operation on the medium, in blocks of 512 bytes: nvmf_media.submit()
 * for the medium as a whole.  It begins in the next ftl_step().
 *
 * @return false when num_ops are in progress
 */
MUST_USE bool ftl_submit(struct ftl *ftl, const struct media_io *io);

/** The number of the block, of the size that the operation names, at which the
 * operation that is ending has failed: nvmf_media.failed_block(). */
uint32_t ftl_failed_block(const struct ftl *ftl);

/** nvmf_media.set_volatile() */
void ftl_set_volatile(struct ftl *ftl, bool is_enabled);

/**
 * Erase all blocks of the flash, also those that hold nothing, are spare, or
 * have failed: nothing that was ever written is left.  It begins as soon as no
 * operation is in progress.  When it has ended, the owner is told.
 *
 * @return false when another one is in progress
 */
MUST_USE bool ftl_wipe(struct ftl *ftl, struct media_owner *owner);

/**
 * Start an operation as soon as one is free, before anybody else gets it.  *io
 * is copied; at most one may wait.
 */
void ftl_submit_next(struct ftl *ftl, const struct media_io *io);

/** Give up what waits because of ftl_submit_next().  @return whether it waited
 */
bool ftl_withdraw_next(struct ftl *ftl);

/** The number of logical units.  It does not change any more when
 * ftl_capacity_is_known() is true. */
uint32_t ftl_capacity(const struct ftl *ftl);
bool ftl_capacity_is_known(const struct ftl *ftl);

/**
 * A word of DRAM is lost, because more than one of its bits is wrong.  Call
 * this before the word is set to zero.
 *
 * If the word is in the write buffer, reads of the block that contains it fail
 * until a host writes the block.  If the word is in a piece of a write that is
 * in progress, or in memory whose protection information is being checked, the
 * operation ends with MEDIA_TRANSFER_ERROR.
 *
 * @return whether the word is in memory whose contents the translation layer
 *         can lose, so that the firmware can go on
 */
bool ftl_note_lost_word(struct ftl *ftl, const uint8_t *word);

/**
 * Handle a lost word that a scrub of the memory has found before anything has
 * read it.  If the word is in data of the write buffer that waits to be
 * programmed, reads of its block fail from now on.
 * @return whether the word is in such data; it can then be set to zero
 */
bool ftl_note_patrolled_word(struct ftl *ftl, const uint8_t *word);

/** This PROTECT of the list of moves has found wrong protection information.
 * The operation to which it belongs ends with the status of the check. */
void ftl_note_failed_check(struct ftl *ftl, const struct ftl_move *move,
                           enum ftl_check check);

/** An operation of the flash has ended. */
void ftl_flash_done(struct ftl *ftl, uint32_t cookie,
                    enum ftl_flash_status status, uint8_t failed_planes);

/**
 * Do what is due, without waiting.
 *
 * @param deadline_us  is lowered to the time of the next work that waits for
 *                     time alone
 * @return whether anything was done
 */
bool ftl_step(struct ftl *ftl, uint64_t now_us, uint64_t *deadline_us);

/**
 * Whether programs or erasures fail again and again because the file of the
 * array cannot be written.  They are repeated until they succeed.  Meanwhile,
 * operations that have to wait until something is programmed end with
 * MEDIA_WRITE_ERROR; before the end of the mount, all operations end with
 * MEDIA_INTERNAL_ERROR.
 */
bool ftl_is_storage_failing(const struct ftl *ftl);

/** Whether no operation is in progress, neither of the medium nor of flash.
 * Programs and erasures that wait until they are repeated do not count. */
bool ftl_is_quiet(const struct ftl *ftl);

/** Operations of the medium in progress. @param all  set to the most */
uint32_t ftl_operations(const struct ftl *ftl, uint32_t *all);

const struct ftl_counters *ftl_counters(const struct ftl *ftl);

/**
 * Whether the flash has lost so many planes that nothing more can be written.
 * All data can be read; writes and trims end with MEDIA_READ_ONLY.  A restart
 * does not change this.
 */
bool ftl_is_read_only(const struct ftl *ftl);

/** Whether all writes and trims that were accepted are on flash. */
bool ftl_is_flushed(const struct ftl *ftl);

/**
 * Prepare for power-off: write a checkpoint, so that the next start is fast.
 * What is in the buffer has to be flushed before, and no write may follow.
 * Go on with ftl_step() until ftl_is_stopped().
 */
void ftl_stop(struct ftl *ftl);

bool ftl_is_stopped(const struct ftl *ftl);

/** Whether garbage collection is about to make the space that the checkpoint of
 * ftl_stop() needs, and that it does not have yet. */
bool ftl_makes_space(const struct ftl *ftl);

/**
 * Save the write buffer, because the power has failed and capacitors supply the
 * drive for a while.  No operation is served from now on.  Call ftl_step()
 * until ftl_is_saved() is true, or until the power is off.
 */
void ftl_power_fails(struct ftl *ftl);

bool ftl_is_saved(const struct ftl *ftl);

/**
 * Whether the flash shows that the drive was switched off in an orderly way, or
 * that the buffer was saved before the power went off.  Valid when the mount
 * has ended.
 *
 * @param start  the number of the start in which hosts last used the drive.
 *               An earlier start cannot have saved what they wrote.
 */
bool ftl_was_saved(const struct ftl *ftl, uint32_t start);

/** Planes of blocks whose programs or erasures have failed, ever. */
uint32_t ftl_failed_planes(const struct ftl *ftl);

/* What this start has found of the write buffer that the earlier one has left:
 * see ftl_config.keep. */
struct ftl_adopted {
    uint32_t units; /* units whose contents wait to be programmed again */
    uint32_t trims; /* units that were trimmed again */
    /* Entries and words of trims of which one copy was damaged or incomplete,
     * and was replaced by the other copy. */
    uint32_t repaired;
    uint32_t damaged; /* discarded, because both copies were damaged */
    /* The buffer was not adopted: it has another layout or other sizes, or an
     * earlier start than the last one has left it. */
    bool is_refused;
};

/**
 * The number of bytes at the end of the kept memory that ftl_count_start()
 * reads.  The caller first sets lost words in these bytes to zero.
 */
enum { FTL_KEEP_HEADS_LEN = 128 };

/**
 * Write the number of this start into the kept memory.  Firmware that starts
 * after a reset calls this function as soon as it knows the number, so that the
 * write buffer also survives another reset before ftl_start().
 *
 * @param end  of the memory in which ftl_config.keep will be
 */
void ftl_count_start(void *end, uint32_t boot);

/** The numbers are complete when ftl_is_adopting() is false. */
const struct ftl_adopted *ftl_adopted(const struct ftl *ftl);

/** Whether the write buffer of the earlier start still has to be adopted: then
 * operations wait, even if the state is FTL_READY. */
bool ftl_is_adopting(const struct ftl *ftl);

/* How often superblocks have been erased, ever. */
struct ftl_erase_counts {
    uint32_t least;
    uint32_t average;
    uint32_t most;
};
void ftl_erase_counts(const struct ftl *ftl, struct ftl_erase_counts *counts);

/** Dies that have died.  They are not used any more, at later starts either. */
uint32_t ftl_dead_dies(const struct ftl *ftl);
bool ftl_die_is_dead(const struct ftl *ftl, uint32_t die);
/** Dead dies that had died before this start, and answered at this start. */
uint32_t ftl_distrusted_dies(const struct ftl *ftl);

/** Whether what is written now survives the loss of a die. */
bool ftl_has_parity(const struct ftl *ftl);

/**
 * Complete the stripes that have no parity on flash yet, with padding: before
 * the power goes off.  ftl_stripes_are_complete() says when this is done: when
 * no row is being programmed any more either.
 */
void ftl_complete_stripes(struct ftl *ftl);
bool ftl_stripes_are_complete(const struct ftl *ftl);

/** Superblocks that hold nothing. */
uint32_t ftl_free_superblocks(const struct ftl *ftl);

/* ---- ftl_look.c: what superblocks hold */

struct ftl_superblock_look {
    const char *state;     /* "free", "erasing", "open", "closed", "retired" or
                            * "checkpoint" */
    const char *stream;    /* that fills it, "host" or "move"; or NULL */
    const char *moves_for; /* why its contents are or will be moved; or NULL */
    uint32_t valid;        /* units that must not be lost */
    uint32_t capacity;     /* units of planes that are not bad */
    uint32_t erasures;     /* ever */
    uint64_t age_rows; /* rows that were programmed since it was closed; 0 if it
                        * is not closed */
};

uint32_t ftl_superblocks(const struct ftl *ftl);
void ftl_look(const struct ftl *ftl, uint32_t superblock,
              struct ftl_superblock_look *look);

#endif
