/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A small NAND array in memory.  The test plays the controller: it starts and
 * finishes operations, and completes requests to storage.
 */
#ifndef ESSD_TEST_NAND_BED_H
#define ESSD_TEST_NAND_BED_H

#include "hw-model/nand/nand_array.h"
#include "hw-model/nand/nand_ram.h"

enum {
    BED_OPS = 4,
    BED_MAX_UNITS = NAND_OP_UNITS,
    BED_SEED = 7,
    BED_FOREVER = 1000000000,
};

struct bed {
    struct nand_ram ram;
    struct nand_file file;
    struct nand_array *array;
    void *memory;
    uint64_t now_ns;
    uint64_t nonce;       /* of the array, when it is opened the next time */
    struct nand_op *done; /* the last operation that was started or finished */
    /* Called for each such operation, if it is not NULL. */
    void (*on_done)(struct bed *bed, struct nand_op *op);
    bool synced;
    bool sync_result;
    uint32_t budget; /* requests to storage that are completed from now on */
    uint8_t data[BED_MAX_UNITS][NAND_UNIT_DATA];
    uint8_t meta[BED_MAX_UNITS][NAND_UNIT_META];
    uint8_t system[BED_MAX_UNITS][NAND_UNIT_SYSTEM];
};

/* An array of one die: 4 planes (2 with mlc2d) of `blocks` blocks. */
struct bed *bed_new(const char *profile, unsigned int blocks,
                    unsigned int wordlines);
/* One of this geometry, whose planes, units and pages are the profile's. */
struct bed *bed_new_geometry(const char *profile,
                             const struct nand_geometry *geometry,
                             uint64_t seed);
void bed_free(struct bed *bed);

/* Forget everything in memory, and open the array again. */
void bed_reopen(struct bed *bed);

/* An operation for planes `planes` of die 0 that names `block` in each. */
struct nand_op *bed_op(struct bed *bed, enum nand_op_kind kind, uint8_t planes,
                       unsigned int block);

/*
 * Start or finish an operation, and complete requests until it is done.
 * @return false when the budget was used up before
 */
bool bed_start(struct bed *bed, struct nand_op *op);
bool bed_finish(struct bed *bed, struct nand_op *op);

/* Write everything to storage. @return whether it succeeded */
bool bed_sync(struct bed *bed);

/*
 * Whole operations: start, finish, put.  They assert nothing.
 * @return the verdict; -1: the budget was used up
 */
int bed_erase(struct bed *bed, uint8_t planes, unsigned int block, bool is_slc,
              bool at_once);
int bed_program(struct bed *bed, uint8_t planes, unsigned int block,
                unsigned int wordline, uint32_t version, bool at_once);

/* Prepare the same without starting it. */
struct nand_op *bed_program_op(struct bed *bed, uint8_t planes,
                               unsigned int block, unsigned int wordline,
                               uint32_t version, bool at_once);

/*
 * Read a unit whole.
 * @return its status; a unit that is good holds what bed_program() with
 *         `version` has written, or the test fails
 */
enum nand_unit_status bed_read(struct bed *bed, unsigned int plane,
                               unsigned int block, unsigned int wordline,
                               unsigned int page, unsigned int unit,
                               uint32_t version);

/* The same, and what the controller learns; `unit` may be NULL. */
int bed_read_unit(struct bed *bed, unsigned int plane, unsigned int block,
                  unsigned int wordline, unsigned int page, unsigned int unit,
                  struct nand_unit *result);

/* Whether the buffers of entry i hold what was written at this place. */
bool bed_content_is(const struct bed *bed, unsigned int i, unsigned int plane,
                    unsigned int block, unsigned int wordline,
                    unsigned int page, unsigned int unit, uint32_t version);

const struct nand_block *bed_block(const struct bed *bed, unsigned int plane,
                                   unsigned int block);

#endif
