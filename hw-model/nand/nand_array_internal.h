/* SPDX-License-Identifier: BSD-2-Clause */
/* What the sources of the NAND array share: see nand_array.h. */
#ifndef ESSD_HW_NAND_ARRAY_INTERNAL_H
#define ESSD_HW_NAND_ARRAY_INTERNAL_H

#include "hw-model/nand/nand_array.h"

enum { NAND_READS_STORED = 4096 }; /* a read counter is stored at multiples */

/* What an operation waits for. */
enum nand_stage {
    STAGE_IDLE,   /* Waits for nand_op_start(). */
    STAGE_LOOKUP, /* Reads the beginnings of slots to find the next wordline. */
    STAGE_TOUCH,  /* Waits for the state record of a new generation. */
    STAGE_DEATH,  /* Waits for the state record that says its die is dead. */
    STAGE_READ,   /* Waits for the units. */
    STAGE_PROGRAM, /* Waits for the units to be written. */
    STAGE_ERASE,   /* Waits for the block records to be written. */
    STAGE_DISCARD, /* Waits for the slots to be discarded. */
    STAGE_STARTED, /* Waits for nand_op_finish(). */
    STAGE_FINISH,  /* Waits for the last writes. */
};

/* The search for the next wordline of a block. */
enum nand_probe {
    PROBE_FIRST,  /* Reads the beginning of the first slot. */
    PROBE_LAST,   /* Reads the beginning of the last slot. */
    PROBE_MIDDLE, /* Reads the beginning of a slot between the bounds. */
    PROBE_GAP,    /* Reads the end of the slot after the last one that was
                   * begun: the beginning of that slot may be damaged. */
    PROBE_END,    /* Reads the end of the last slot that was begun. */
};

/* What the array's own request writes. */
enum nand_own {
    OWN_IDLE,
    OWN_STATE,      /* The state, for operations that wait or a dead die. */
    OWN_RECORDS,    /* nand_array_sync(): block records. */
    OWN_SYNC_STATE, /* nand_array_sync(): the state. */
    OWN_FLUSH,      /* nand_array_sync(): everything is made durable. */
};

struct nand_array {
    struct nand_array_config config;
    struct nand_file file;
    struct nand_layout layout;
    uint32_t num_blocks;
    struct nand_block *blocks;
    struct nand_op *ops;
    uint32_t free_op; /* num_ops: none */
    uint32_t active_ops;

    bool has_origin;    /* `origin_ns` is set */
    uint64_t origin_ns; /* virtual time of the first operation */
    uint64_t base_ns;   /* model time at that time */

    /* `file.state` is the state that is written next, or is being written.  A
     * die that is dead there, but not in `stored`, is dying. */
    struct nand_state stored;  /* the state that storage holds */
    struct nand_state writing; /* with OWN_STATE and OWN_SYNC_STATE */

    bool is_touched;     /* this generation's state is in storage */
    uint8_t own;         /* enum nand_own */
    uint32_t sync_first; /* blocks whose records are being written */
    uint32_t sync_count;
    struct iovec own_iov;
    uint8_t own_buf[NAND_SYNC_RECORDS * NAND_RECORD_LEN];

    uint32_t num_injections;
    struct nand_injection injections[NAND_INJECTIONS];
    struct nand_fault_hook fault_hook;

    uint8_t ones[NAND_UNIT_META]; /* FFh: what is programmed by default */
};
_Static_assert(sizeof(((struct nand_array *)0)->own_buf) >= NAND_STATE_LEN,
               "the buffer also holds the state");

/* ---- nand_array.c */

/** The model time at this virtual time; the first call fixes the difference. */
uint64_t nand_array_time(struct nand_array *array, uint64_t now_ns);

static inline uint32_t nand_op_block(const struct nand_array *array,
                                     const struct nand_op *op,
                                     unsigned int plane)
{
    return nand_block_index(&array->file.geometry, op->channel, op->die, plane,
                            op->block[plane]);
}

static inline struct nand_block *nand_op_state(struct nand_array *array,
                                               const struct nand_op *op,
                                               unsigned int plane)
{
    return &array->blocks[nand_op_block(array, op, plane)];
}

/** Pages of a wordline in a mode. */
static inline uint8_t nand_array_pages(const struct nand_array *array,
                                       bool is_slc)
{
    return nand_profile_mode(array->file.profile, is_slc)->pages;
}

static inline unsigned int nand_op_count_planes(const struct nand_op *op)
{
    return (unsigned int)__builtin_popcount(op->planes);
}

/** The first plane of the operation from `plane` on; NAND_OP_PLANES: none. */
static inline unsigned int nand_op_plane(const struct nand_op *op,
                                         unsigned int plane)
{
    while (plane < NAND_OP_PLANES && (op->planes & BIT(plane)) == 0) {
        plane++;
    }
    return plane;
}

/** Begin a stage, which has no requests yet. */
static inline void nand_op_enter(struct nand_op *op, enum nand_stage stage)
{
    op->work.stage = (uint8_t)stage;
    op->work.num_io = 0;
    op->work.num_iov = 0;
}

/** Note the first wordline of a block that was not programmed. */
static inline void nand_block_known(struct nand_block *block, uint32_t next,
                                    bool is_torn)
{
    block->next = (uint16_t)next;
    block->flags |= NAND_BLOCK_KNOWN;
    if (is_torn) {
        block->flags |= NAND_BLOCK_TORN;
    }
}

/** Emit the record of a block; `flags` and the rest are as in `block`. */
void nand_array_emit_record(const struct nand_block *block, uint32_t index,
                            uint64_t time_ns, uint8_t buf[NAND_RECORD_LEN]);

/**
 * Before the first change of a generation: write the state.
 *
 * @return true when that is done; false: nand_op_touched() will be called
 */
bool nand_array_touch(struct nand_array *array, struct nand_op *op);

/**
 * The operation's die dies.  It is dead when the state in storage says so;
 * until then, every operation for it waits.  nand_op_died() will be called.
 */
void nand_array_kill_die(struct nand_array *array, struct nand_op *op);

/** Whether the operation's die is dying. */
bool nand_array_die_is_dying(const struct nand_array *array,
                             const struct nand_op *op);

/* ---- nand_inject.c */

/** The effect of an injected fault on this event; false: none. */
/* Whether there are faults at all. */
bool nand_inject_is_on(const struct nand_array *array);
bool nand_inject_event(struct nand_array *array, const struct nand_op *op,
                       unsigned int plane, const struct nand_unit *unit,
                       bool is_die, struct nand_fault *fault);

/* ---- nand_op.c */

/** The state was written, or could not be. */
void nand_op_touched(struct nand_array *array, struct nand_op *op, int result);
/** The death of the operation's die was stored, or could not be. */
void nand_op_died(struct nand_array *array, struct nand_op *op, int result);
/** All requests of the operation's stage have ended. */
void nand_op_continue(struct nand_array *array, struct nand_op *op);

/** Start a request of the operation. */
void nand_op_readv(struct nand_array *array, struct nand_op *op,
                   uint64_t offset, struct iovec *iov, unsigned int niov);
void nand_op_writev(struct nand_array *array, struct nand_op *op,
                    uint64_t offset, struct iovec *iov, unsigned int niov);

/* Identifier of a request that the operation starts. */
uint32_t nand_op_new_request(struct nand_array *array, struct nand_op *op);

/** Append a vector to those of the operation. */
struct iovec *nand_op_vector(struct nand_op *op, void *base, size_t len);

/* ---- nand_op_check.c */

/** What can be checked without storage.  Sets `was_slc` and `rule`. */
enum nand_verdict nand_op_check(struct nand_array *array, struct nand_op *op);

/** The rule that the operation breaks when its blocks are known; 0: none. */
uint8_t nand_op_broken_rule(struct nand_array *array, const struct nand_op *op);

/* ---- nand_op_lookup.c */

/**
 * Find the next wordline of every block whose next one is not known.
 *
 * @return true when all are known; otherwise a request is in progress
 */
bool nand_op_look_up(struct nand_array *array, struct nand_op *op);

/**
 * The request has ended.
 *
 * @return true when the next wordline of this block is known; otherwise another
 *         request is in progress
 */
bool nand_op_probe_done(struct nand_array *array, struct nand_op *op);

/* ---- nand_op_change.c */

/** Note that the operation changes its blocks, or that it has ended. */
void nand_op_set_busy(struct nand_array *array, const struct nand_op *op,
                      bool is_busy);

/** Start a program or an erase.  The generation is in storage. */
void nand_op_start_change(struct nand_array *array, struct nand_op *op);

/** Give back the storage of slots: requests are in progress then. */
void nand_op_discard(struct nand_array *array, struct nand_op *op);

/**
 * Write what makes the change complete.
 *
 * @return whether requests are in progress
 */
bool nand_op_finish_change(struct nand_array *array, struct nand_op *op);

/** Everything is written, or could not be: change the state of the blocks. */
void nand_op_end_change(struct nand_array *array, struct nand_op *op);

/**
 * Storage has failed, so the operation can be repeated.  Storage may hold a
 * part of what it would have written.  Until then, the wordlines of a program
 * stay erased.  The blocks of an erasure are half erased, also if the state is
 * stored before the erasure is repeated.
 */
void nand_op_note_failure(struct nand_array *array, const struct nand_op *op);

/* ---- nand_op_read.c */

/** Start to read. @return whether requests are in progress */
bool nand_op_read(struct nand_array *array, struct nand_op *op);
/** The requests have ended: judge what was read. */
void nand_op_read_done(struct nand_array *array, struct nand_op *op);

#endif
