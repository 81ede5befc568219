/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The flash seam: the interface between the translation layer and the driver of
 * the NAND controller.  It has the operations, the units and the rules of
 * docs/hardware/nand.md; dies are counted over all channels.
 *
 * Operations are asynchronous.  submit() starts one and returns; the owner
 * calls ftl_flash_done() once for each, from the main loop and never inside
 * submit().  A die executes its operations in the order of submit(), except for
 * urgent reads.
 */
#ifndef ESSD_FTL_FLASH_H
#define ESSD_FTL_FLASH_H

#include "lib/util.h"

enum {
    FTL_UNIT_DATA = 4096,
    FTL_UNIT_META = 64,
    FTL_UNIT_SYSTEM = 16,
    FTL_DIES_MAX = 256,
    FTL_PARITY_DIES = 3, /* with fewer dies there is no parity */
    FTL_PLANES_MAX = 4,
    FTL_OP_UNITS = 64, /* units of an operation, at most */
};

/*
 * Why an operation of the flash is done, as traces show it
 * (tools/essd/observe/trace.py names them in the same order).
 */
enum ftl_cause {
    FTL_CAUSE_READ,       /* a host reads */
    FTL_CAUSE_WRITE,      /* a host has written: its data are programmed, or the
                           * rest of a unit is read of which it writes a part */
    FTL_CAUSE_TRIM,       /* pages that record which units are trimmed */
    FTL_CAUSE_RECORD,     /* pages with failed planes and erase counts */
    FTL_CAUSE_COLLECT,    /* garbage collection, because space is needed */
    FTL_CAUSE_LEVEL,      /* wear levelling */
    FTL_CAUSE_SCRUB,      /* scrubbing, and moving what it has found weak */
    FTL_CAUSE_DISTURB,    /* moving what a host's read has found weak */
    FTL_CAUSE_REBUILD,    /* rebuilding from other dies; moving what has no
                           * parity any more */
    FTL_CAUSE_CHECKPOINT, /* writing a checkpoint, erasing the old one */
    FTL_CAUSE_MOUNT,      /* the mount, and moving what it has left to do */
    FTL_CAUSE_WIPE,       /* erasing everything */
    FTL_CAUSE_POWER,      /* saving the buffer because the power fails */
    FTL_CAUSES
};

/* ftl_flash_op.tag: the cause, and the number of the host's request. */
enum { FTL_TAG_CAUSE_SHIFT = 24, FTL_TAG_NUMBER = 0xffffff };

/** @param number  media_io.number, or FTL_TAG_NUMBER for none */
static inline uint32_t ftl_tag(enum ftl_cause cause, uint32_t number)
{
    return (uint32_t)cause << FTL_TAG_CAUSE_SHIFT | (number & FTL_TAG_NUMBER);
}

static inline enum ftl_cause ftl_tag_cause(uint32_t tag)
{
    return (enum ftl_cause)(tag >> FTL_TAG_CAUSE_SHIFT);
}

struct ftl_geometry {
    uint16_t dies;      /* of all channels, 1..256 */
    uint8_t planes;     /* of a die, 1..4 */
    uint8_t pages;      /* of a wordline, 1..4 */
    uint8_t units;      /* of a page, 1..4 */
    uint16_t blocks;    /* of a plane */
    uint16_t wordlines; /* of a block */
};

enum ftl_flash_kind {
    FTL_FLASH_READ,
    FTL_FLASH_PROGRAM,
    FTL_FLASH_ERASE,
};

enum ftl_flash_status {
    FTL_FLASH_OK,       /* a read: each unit has its own status */
    FTL_FLASH_GOOD,     /* a read: all units are good, and needed only the first
                         * step of the correction; none had more wrong bits than
                         * ftl_config.reclaim_bits; the units' status is not
                         * set */
    FTL_FLASH_FAILED,   /* a program or erase failed in some planes */
    FTL_FLASH_DEAD,     /* the die does not answer */
    FTL_FLASH_TRANSFER, /* parity errors between DRAM and die, also in all
                         * repetitions; the flash is unchanged */
    FTL_FLASH_STORAGE,  /* the file of the array could not be read or written; a
                         * program or an erasure can be repeated */
    FTL_FLASH_ERROR,    /* anything else: nothing is known about the result */
    FTL_FLASH_ABORTED,  /* a program, with ftl_config.queues_rows: an earlier
                         * one in its block has failed, and it has not begun */
};

enum ftl_unit_status {
    FTL_UNIT_GOOD,
    FTL_UNIT_ERASED,        /* nothing was written to memory */
    FTL_UNIT_UNCORRECTABLE, /* memory holds bytes without meaning */
};

/*
 * A unit, or a part of one that is read.  A program has an entry for each unit,
 * in the order of nand.md: for each page, each plane, each unit.
 */
struct ftl_flash_unit {
    uint8_t *data;   /* a read: NULL when it is not wanted */
    uint8_t *meta;   /* a read: NULL when it is not wanted */
    uint8_t *system; /* the same */
    uint16_t offset; /* of the part that is read, in bytes */
    uint16_t length; /* of that part */
    uint8_t plane;
    uint8_t page;
    uint8_t unit;
    bool more;      /* the next entry is a part of the same unit */
    uint8_t status; /* enum ftl_unit_status, set by a read, as the next two */
    uint8_t steps;  /* of the correction, beyond the first one */
    uint16_t wrong_bits; /* that were corrected */
};

struct ftl_flash_op {
    uint8_t kind;   /* enum ftl_flash_kind */
    uint8_t planes; /* one bit for each */
    uint16_t die;
    uint16_t block; /* the same in each plane */
    uint16_t wordline;
    uint16_t num_units;
    bool is_urgent; /* a read: it passes operations of its die that have not
                     * begun, and suspends a program or an erasure of another
                     * block */
    bool is_reused; /* an erasure: the block is programmed again soon, so its
                     * storage need not be deallocated */
    bool is_listed; /* a program: ftl_flash.list_units() was called, and its
                     * units have not changed since */
    uint32_t tag;   /* ftl_tag(): for traces alone */
    struct ftl_flash_unit *units; /* valid until ftl_flash_done() */
    uint32_t cookie;              /* argument of ftl_flash_done() */
};

enum ftl_move_kind {
    FTL_MOVE_COPY,
    FTL_MOVE_XOR, /* the target becomes the XOR of source and target */
    /* Continues the CRC of a block over the source, and copies the source to
     * the target if there is one. */
    FTL_MOVE_ADD_GUARD,
    FTL_MOVE_PROTECT, /* ends a block; see ftl_memory_protect() */
    FTL_MOVE_ADD_ROW, /* adds the units of a program to a sum; see
                       * ftl_memory_add_row() */
};

/* A move in the form of docs/hardware/nand.md, sections 9 and 10. */
struct ftl_move {
    uint64_t source; /* addresses for the controller */
    uint64_t target;
    uint32_t length; /* 1..4096 bytes; PROTECT: the reference tag; ADD_ROW: the
                      * number of units */
    uint8_t kind;    /* enum ftl_move_kind */
    uint8_t flags;   /* PROTECT: type and checks, as in media_io.protection;
                      * ADD_ROW: FTL_MOVE_BEGIN or 0 */
    uint16_t app_tag;
    uint16_t app_mask;
    /* The controller does not use the rest. */
    uint16_t op;    /* ADD_GUARD, PROTECT: index of the operation */
    uint32_t block; /* PROTECT: number of the block in the operation */
};

enum { FTL_MOVE_BEGIN = 1 }; /* the sum begins with the units */

enum ftl_check { /* the checks of a PROTECT */
                 FTL_CHECK_GUARD,
                 FTL_CHECK_APP_TAG,
                 FTL_CHECK_REF_TAG,
};

/* Moves that wait for ftl_flash.run_moves(). */
struct ftl_moves {
    struct ftl_move *list;
    uint32_t count;
    uint32_t max;
    uint64_t addr_offset; /* the controller's address of a byte minus the hart's
                           * address */
};

struct ftl_flash {
    void *ctx;

    struct ftl_moves *moves; /* a list for the NAND controller */

    /**
     * Do the moves of the list in order, and empty it.  If a check of a PROTECT
     * fails, call ftl_note_failed_check() and go on with the next move.
     */
    void (*run_moves)(void *ctx);

    /**
     * List the units of a program for FTL_MOVE_ADD_ROW, before the program is
     * submitted.  NULL: the flash has no such moves.
     *
     * @return the list's address for the controller, valid until
     *         ftl_flash_done()
     */
    uint64_t (*list_units)(void *ctx, const struct ftl_flash_op *op);

    /**
     * Start one operation.  *op is valid until ftl_flash_done().
     *
     * @return false when there is no room; nothing was started
     */
    bool (*submit)(void *ctx, const struct ftl_flash_op *op);
};

#endif
