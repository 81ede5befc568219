/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The flash seam of the translation layer (storage/ftl/ftl_flash.h), served by
 * the NAND controller's driver.
 */
#ifndef ESSD_MEDIUM_NAND_SEAM_H
#define ESSD_MEDIUM_NAND_SEAM_H

#include "firmware/drivers/nand.h"
#include "storage/ftl/ftl.h"

/* Why an operation has failed. */
enum nand_seam_failure {
    NAND_SEAM_PROGRAM,       /* a wordline could not be programmed */
    NAND_SEAM_ERASE,         /* a block could not be erased */
    NAND_SEAM_UNCORRECTABLE, /* units of a read could not be corrected */
    NAND_SEAM_TRANSFER,      /* each repetition had a parity error, too */
};

/* An operation of the translation layer that is in progress. */
struct nand_seam_op {
    const struct ftl_flash_op *flash;
    bool is_read;
    bool wants_system;       /* the system bytes of its units are copied */
    uint8_t repeats;         /* how often the operation was submitted again */
    uint8_t transfer_errors; /* parity errors of its data so far */
};

struct nand_seam {
    struct nand *nand;
    struct ftl *ftl; /* set it before the first completion */
    /* If a device has found lost words of DRAM, call ftl_note_lost_word() for
     * each, and clear it.  @return whether there were any */
    bool (*find_lost_words)(void *ctx);
    /* The data of an operation had a parity error.  May be NULL. */
    void (*transfer_failed)(void *ctx, const struct ftl_flash_op *op);
    /* An operation has failed.  Dead dies are left out.  May be NULL. */
    void (*op_failed)(void *ctx, const struct ftl_flash_op *op,
                      enum nand_seam_failure failure);
    /* An operation broke a rule of the flash.  May be NULL. */
    void (*rule_broken)(void *ctx, const struct ftl_flash_op *op, uint8_t rule);
    void *ctx;
    /* Parity errors since the start, and how many of them a repetition of the
     * operation has corrected. */
    uint32_t transfer_errors, transfers_corrected;
    uint32_t rules_broken; /* operations since the start */
    uint8_t dies;          /* of a channel */
    uint16_t num_ops;
    uint16_t good_bits; /* ftl_config.reclaim_bits */
    struct nand_moves move_list;
    struct ftl_moves moves;   /* the moves in `move_list` */
    struct nand_seam_op *ops; /* by cookie */
    uint8_t *lists;           /* the entries of each operation */
};

/**
 * Allocate what the seam needs from the DRAM.
 *
 * @param nand     initialised, and outlives the seam
 * @param ftl      the translation layer's configuration
 * @return false when there is no room
 */
MUST_USE bool nand_seam_init(struct nand_seam *seam, struct nand *nand,
                             const struct nand_info *info, struct dram *dram,
                             const struct ftl_config *ftl);

/* What nand_seam_read_marks() has found. */
struct nand_marks {
    uint32_t blocks;    /* that are marked */
    uint32_t dead_dies; /* that do not answer */
};

/**
 * Read which blocks the factory has marked as bad, before the driver is used
 * for anything else.  Of a die that does not answer, no block is marked: the
 * translation layer finds out that it is dead.
 *
 * @param list        planes times blocks bytes of DRAM, 64-byte aligned
 * @param bad_planes  zeroed, for ftl_config.bad_planes
 * @return false when the controller refuses, or does not answer for a second
 */
MUST_USE bool nand_seam_read_marks(struct nand *nand,
                                   const struct nand_info *info, uint8_t *list,
                                   uint8_t *bad_planes,
                                   struct nand_marks *marks);

/** The geometry that the translation layer sees. */
struct ftl_geometry nand_seam_geometry(const struct nand_info *info);

/** The seam, for ftl_config. */
struct ftl_flash nand_seam_flash(struct nand_seam *seam);

/**
 * Report at most `budget` completed commands to the translation layer.
 *
 * @return the number of commands
 */
unsigned int nand_seam_poll(struct nand_seam *seam, unsigned int budget);

/** The same up to the first command that has failed: see nand_poll_good(). */
void nand_seam_poll_good(struct nand_seam *seam, unsigned int budget,
                         bool *is_other);

/** Report one completed command: the function for nand_poll(). */
void nand_seam_done(void *seam, const struct nand_done *done);

#endif
