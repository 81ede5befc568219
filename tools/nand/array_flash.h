/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The file of an array as the flash of a translation layer: the array's rules,
 * errors and wear (hw-model/nand) without the NAND controller.  Operations take
 * no time.
 */
#ifndef ESSD_TOOLS_NAND_ARRAY_FLASH_H
#define ESSD_TOOLS_NAND_ARRAY_FLASH_H

#include "storage/ftl/ftl.h"
#include "hw-model/nand/nand_array.h"
#include "image.h"

enum {
    ARRAY_FLASH_QUEUE = 512, /* operations that wait, at most */
    ARRAY_FLASH_ENDED = 128, /* requests to storage that have ended */
    ARRAY_FLASH_MOVES = 64,  /* moves that wait, at most */
};

/* A request to storage that has ended. */
struct array_flash_ended {
    uint32_t id;
    int result;
};

/* Treat as opaque, except for ftl, storage_errno and rule_broken. */
struct array_flash {
    const struct image *image;
    struct nand_array *array;
    void *memory; /* of the array */
    /* For each block, whether its storage is not needed.  The element after the
     * last block is unused. */
    bool *is_discarded;
    struct ftl *ftl; /* the owner sets it after ftl_start() */
    struct ftl_flash_op queue[ARRAY_FLASH_QUEUE];
    uint32_t head, tail;
    struct array_flash_ended ended[ARRAY_FLASH_ENDED];
    uint32_t ended_head, ended_tail;
    struct ftl_moves moves; /* for ftl_flash.moves */
    struct ftl_move move_list[ARRAY_FLASH_MOVES];
    bool is_synced;
    int storage_errno; /* errno of the first access to the file that failed, or
                        * 0 */
    /* The translation layer has broken a rule of the flash, which is a bug.  A
     * line has been printed for each operation that did so. */
    bool rule_broken;
};

/**
 * Open the array of a file that image_open() has opened for writing.
 * @return false when that is not possible; a line has been printed
 */
MUST_USE bool array_flash_open(struct array_flash *flash,
                               const struct image *image);
void array_flash_close(struct array_flash *flash);

/** The function for ftl_flash.submit. */
MUST_USE bool array_flash_submit(void *flash, const struct ftl_flash_op *op);

/** The function for ftl_flash.run_moves.  It does not do moves for protection
 * information: the callers' operations have media_io.protection 0. */
void array_flash_move(void *flash);

/**
 * Execute the operations that wait.
 * @return whether there were any
 */
bool array_flash_run(struct array_flash *flash);

/**
 * Write to the file what is only in memory, and make everything durable.  Call
 * this only when no operation waits.
 * @return false when the file could not be written
 */
MUST_USE bool array_flash_sync(struct array_flash *flash);

/**
 * Note which planes of a die the factory has marked as bad.
 *
 * @param bad_planes  for each block a byte for each die, with a bit for each
 *                    plane; all of them 0
 * @return how many dies do not answer: their marks cannot be read
 */
uint32_t array_flash_read_marks(const struct array_flash *flash,
                                uint8_t *bad_planes);

#endif
