/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An array of NAND flash: geometry, rules, wear, errors, and its storage.
 * Reference: docs/hardware/nand.md; the storage: docs/hardware/nand-file.md.
 *
 * The array knows what flash does, not when: its owner, the NAND controller,
 * decides the order and the time of operations.  An operation has three parts:
 *
 *   nand_op_start()   checks the rules and transfers the data: from storage
 *                     into DRAM for a read, from DRAM into storage for a
 *                     program.  After it the result is known.
 *   (time)            the owner lets the time of the operation pass
 *   nand_op_finish()  makes the change complete: now the wordline is
 *                     programmed, or the block is erased
 *
 * Storage that is left after nand_op_start() and before nand_op_finish() holds
 * a wordline that is half programmed, or a block that is half erased.  So a
 * power cut needs no function of the array: a process that is killed, or a
 * native program that drops its requests to storage (nand_ram_power_cut()),
 * leaves in storage what a power cut leaves in flash, and nand_array_open()
 * recognises it.
 *
 * Operations of different blocks may be in progress at the same time, also in
 * one die (a read during a program that the owner has suspended).  The owner
 * starts no operation for a block that another one is using, except reads at
 * the same time as reads.
 *
 * It has one execution context, like the device cores (hw-model/core/env.h).
 * All memory is the owner's.
 */
#ifndef ESSD_HW_NAND_ARRAY_H
#define ESSD_HW_NAND_ARRAY_H

#include "hw-model/nand/nand_backend.h"
#include "hw-model/nand/nand_errors.h"
#include "hw-model/nand/nand_file.h"
#include "hw-model/nand/nand_inject.h"
#include "hw-model/nand/nand_profile.h"
#include "lib/util.h"

enum {
    NAND_OP_PLANES = 4,
    NAND_OP_UNITS = 64, /* entries of an operation, at most */
    /* Vectors of an operation: two gaps, data, metadata, system bytes and
     * trailer of each unit; two headers of each plane. */
    NAND_OP_IOV = 6 * NAND_OP_UNITS + 2 * NAND_OP_PLANES,
    NAND_IO_PER_OP = 64,    /* requests of an operation in progress, at most */
    NAND_SYNC_RECORDS = 64, /* block records that one request writes */
};

enum nand_op_kind {
    NAND_OP_READ,
    NAND_OP_PROGRAM,
    NAND_OP_ERASE,
};

/* The result of an operation. */
enum nand_verdict {
    NAND_VERDICT_OK,
    NAND_VERDICT_BAD_PLACE,    /* not in the array */
    NAND_VERDICT_RULE,         /* broke the rule `rule` of nand.md, section 1 */
    NAND_VERDICT_DEAD,         /* the die does not answer */
    NAND_VERDICT_FAILED,       /* program or erase failed in `failed_planes` */
    NAND_VERDICT_TRANSFER,     /* a parity error; nothing was read or changed */
    NAND_VERDICT_STORAGE,      /* the storage failed; see `storage_errno` */
    NAND_VERDICT_BAD_ARGUMENT, /* number or order of entries, or SLC mode of a
                                * part that has none */
};

/* The result of a unit that was read. */
enum nand_unit_status {
    NAND_UNIT_GOOD,          /* its data is right, perhaps after correction */
    NAND_UNIT_ERASED,        /* not programmed; nothing was written to DRAM */
    NAND_UNIT_UNCORRECTABLE, /* DRAM holds bytes without meaning */
};

/*
 * One entry of an operation: a unit, or a part of one that is read.  Entries
 * that are parts of the same unit follow each other, with ascending offsets
 * that do not overlap.
 *
 * A program has an entry for each unit of each plane in `planes`: for each
 * page, for each plane in ascending order, for each unit.  The array fills in
 * the place.
 */
struct nand_unit {
    uint8_t *data;   /* `length` bytes; NULL: not wanted (read only) */
    uint8_t *meta;   /* 64 bytes; NULL: not wanted, or FFh to program */
    uint8_t *system; /* 16 bytes; NULL: not wanted, or FFh to program */
    uint16_t offset; /* of `data` in the unit (read only) */
    uint16_t length; /* of `data` in bytes (read only) */
    uint16_t wordline;
    uint8_t plane;
    uint8_t page;
    uint8_t unit;
    bool more; /* the next entry is a part of the same unit */

    /* Results of a read. */
    uint8_t status; /* enum nand_unit_status */
    uint8_t steps;  /* of the correction beyond the first; also of those that
                     * are uncorrectable */
    uint16_t bits;  /* that were wrong */
};

/* What the array keeps of an operation; private. */
struct nand_op_work {
    uint32_t next_free;
    bool is_used;
    bool is_waiting;  /* for the state to be written */
    bool is_woken;    /* that has ended, and the operation can go on */
    bool cuts_power;  /* power_cut() of nand_fault_hook is called when the
                       * operation has begun */
    uint32_t cut_by;  /* with cuts_power: the fault rule */
    uint8_t stage;    /* enum nand_stage */
    uint8_t probe;    /* enum nand_probe: what is looked for */
    uint8_t plane;    /* whose next wordline is looked for */
    uint8_t crossed;  /* planes whose read counter is to be stored */
    uint32_t low;     /* bounds of the search: all before it were begun, */
    uint32_t high;    /* and this one was not */
    uint16_t pending; /* requests in progress */
    uint16_t num_io;  /* requests of this stage */
    uint16_t num_iov;
    uint64_t time_ns;              /* model time */
    uint32_t reads[NAND_OP_UNITS]; /* of the block, with this unit's */
    uint8_t headers[NAND_OP_PLANES][2][NAND_WORDLINE_LEN];
    uint8_t records[NAND_OP_PLANES][NAND_RECORD_LEN];
    uint8_t trailers[NAND_OP_UNITS][NAND_TRAILER_LEN];
    /* What the owner of a read does not want of its units.  All of a unit is
     * read and checked, whatever is wanted. */
    uint8_t (*rest_data)[NAND_UNIT_DATA]; /* NAND_OP_UNITS of them */
    uint8_t rest_meta[NAND_OP_UNITS][NAND_UNIT_META];
    uint8_t rest_system[NAND_OP_UNITS][NAND_UNIT_SYSTEM];
    struct iovec iov[NAND_OP_IOV];
};

struct nand_op {
    /* Filled in by the owner before nand_op_start(). */
    void *owner;  /* the array does not use it */
    uint8_t kind; /* enum nand_op_kind */
    uint8_t channel;
    uint8_t die;    /* of the channel */
    uint8_t planes; /* one bit for each */
    bool is_slc;    /* erase: the mode from now on */
    /* Erase: do not deallocate the storage of the blocks, because they are
     * programmed again soon. */
    bool keeps_storage;
    /*
     * No time passes before nand_op_finish(): storage is written once, as if
     * the operation had finished already.  For timing=fast.
     */
    bool finishes_at_once;
    uint16_t block[NAND_OP_PLANES]; /* indexed by plane */
    uint16_t wordline;              /* program */
    uint16_t num_units;             /* of `units`, which are below */

    /* Results, after nand_op_start(). */
    uint8_t verdict;       /* enum nand_verdict */
    uint8_t rule;          /* with NAND_VERDICT_RULE */
    uint8_t failed_planes; /* with NAND_VERDICT_FAILED */
    /* Whether all blocks were in SLC mode: with nand_profile_mode() it gives
     * the times. */
    bool was_slc;
    int storage_errno; /* 0, or positive */

    /*
     * The owner fills in the first num_units.  nand_op_get() does not clear
     * them: they are many, and most operations use few.
     */
    struct nand_unit units[NAND_OP_UNITS];

    struct nand_op_work work;
};

/* The state of a block in memory. */
struct nand_block {
    uint32_t number; /* erasures begun: the erase number of its wordlines */
    uint32_t wear;   /* in NAND_WEAR_CYCLE-ths of an erasure in native mode */
    uint32_t reads;  /* of its pages since it was erased */
    uint16_t next;   /* first wordline that was not programmed */
    uint8_t flags;
    uint8_t reserved;
};
_Static_assert(sizeof(struct nand_block) == 16, "drives have many blocks");

struct nand_array;

struct nand_array_config {
    struct nand_backend backend;
    const struct nand_file *file; /* from nand_file_open(); it is copied */
    /* Random, and another one each time that an array is opened: the nonce of
     * the generations that begin from now on.  0: they have no nonce, and no
     * machine can be saved. */
    uint64_t nonce;
    unsigned int num_ops; /* operations in progress, at most; >= 1 */
    void *memory;         /* nand_array_memory_bytes(), 64-byte aligned */
    void *ctx;            /* for the functions below */

    /*
     * nand_op_start() or nand_op_finish(), which returned false, is done.
     * Called from nand_array_io_done(), also for other operations than the
     * one whose request has ended.  It may start and finish operations.
     */
    void (*started)(void *ctx, struct nand_op *op);
    void (*finished)(void *ctx, struct nand_op *op);

    /* nand_array_sync(), which returned false, is done. */
    void (*synced)(void *ctx, bool success);
};

/** Bytes of memory for an array: its blocks and operations.  A large part of it
 * is used only when many reads of parts of units are in progress. */
size_t nand_array_memory_bytes(const struct nand_geometry *geometry,
                               unsigned int num_ops);

/** Identifiers of requests to storage are less than this. */
static inline uint32_t nand_array_io_ids(unsigned int num_ops)
{
    return num_ops * NAND_IO_PER_OP + 1;
}

/**
 * Power-on: read the record of every block from `source`, with which `file` was
 * opened.  Nothing is written.
 *
 * @param failure  when it fails: why, and which block's record it is
 * @return NULL when a record is damaged or cannot be read; the array otherwise,
 *         which is in `config->memory`
 */
MUST_USE struct nand_array *nand_array_open(
    const struct nand_array_config *config,
    const struct nand_file_source *source, struct nand_file_failure *failure);

const struct nand_geometry *nand_array_geometry(const struct nand_array *array);
const struct nand_profile *nand_array_profile(const struct nand_array *array);

/**
 * Use other times than those of the part, for experiments.  Only times may
 * differ.
 *
 * @param profile  outlives the array
 */
void nand_array_set_times(struct nand_array *array,
                          const struct nand_profile *profile);

/** A request to the back-end has ended. @param result  0 or -errno */
void nand_array_io_done(struct nand_array *array, uint32_t id, int result);

/**
 * Take an operation from the pool.  The fields that the owner fills in are
 * zero, except the units.
 *
 * @return NULL when all are in use
 */
struct nand_op *nand_op_get(struct nand_array *array);

/** Give back an operation that has no request in progress. */
void nand_op_put(struct nand_array *array, struct nand_op *op);

/** The index of an operation, 0..num_ops - 1, and the way back. */
uint32_t nand_op_index(const struct nand_array *array,
                       const struct nand_op *op);
struct nand_op *nand_op_at(struct nand_array *array, uint32_t index);

/**
 * Begin an operation: check it, and transfer its data.
 *
 * Unless its verdict is OK or FAILED, the operation has ended and changed
 * nothing (STORAGE excepted): nand_op_put() comes next.  Otherwise
 * nand_op_finish() comes next, after the time of the operation.
 *
 * @param now_ns  virtual time
 * @return true when it is done already; false: config.started() will be called
 */
MUST_USE bool nand_op_start(struct nand_array *array, struct nand_op *op,
                            uint64_t now_ns);

/**
 * Complete an operation: its blocks change their state.  Afterwards the verdict
 * may have become STORAGE.
 *
 * @return true when it is done already; false: config.finished() will be called
 */
MUST_USE bool nand_op_finish(struct nand_array *array, struct nand_op *op,
                             uint64_t now_ns);

/**
 * Write all state to storage that is only in memory (the read counters, the
 * model time), and flush the storage.  No operation is in progress.  To be
 * called before the machine is saved and when it stops.
 *
 * @return true when it is done already; false: config.synced() will be called
 */
MUST_USE bool nand_array_sync(struct nand_array *array, uint64_t now_ns);

/**
 * The generation of the array's contents.  A new one begins with the first
 * operation that changes the array after it was opened or synchronised, and is
 * in storage before that change.  nand_array_sync() also begins one if another
 * file may have the same generation and other contents: after a power cut, and
 * if the generation has no nonce.
 */
const struct nand_generation *nand_array_generation(
    const struct nand_array *array);

/**
 * Whether storage holds exactly what the generation names.
 *
 * A machine is saved only if this is true, after nand_array_sync(); it keeps
 * the generation.  It is loaded only over an array that has this generation
 * when it is opened, and for which this is true.
 */
bool nand_array_is_synced(const struct nand_array *array);

/**
 * A block's state, also for `MARKS`.  `next` is meaningful with KNOWN only.
 * The place is in the array.
 */
const struct nand_block *nand_array_block(const struct nand_array *array,
                                          unsigned int channel,
                                          unsigned int die, unsigned int plane,
                                          unsigned int block);

/** Whether the die does not answer, now and after every power-on. */
bool nand_array_die_is_dead(const struct nand_array *array,
                            unsigned int channel, unsigned int die);

/** What is wrong with an operation that breaks this rule. */
const char *nand_rule_text(uint8_t rule);

/** Whether no operation and no request is in progress. */
bool nand_array_is_quiet(const struct nand_array *array);

/**
 * Inject a fault (nand_inject.h).
 *
 * @return false when there are NAND_INJECTIONS already
 */
MUST_USE bool nand_array_inject(struct nand_array *array,
                                const struct nand_injection *injection);
void nand_array_clear_injections(struct nand_array *array);

/** Ask `hook` about faults, too; it is copied. */
void nand_array_set_hook(struct nand_array *array,
                         const struct nand_fault_hook *hook);

#endif
