/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads and writes the blocks in flash: reads the copy that is in force, writes
 * the other one, and counts boots.
 * Reference: docs/hardware/flash.md
 */
#ifndef ESSD_STORE_STORE_H
#define ESSD_STORE_STORE_H

#include "firmware/drivers/flash.h"
#include "firmware/store/config.h"
#include "firmware/store/identity.h"

/*
 * @return false when neither copy is intact: the drive was never given an
 *         identity
 */
MUST_USE bool store_read_identity(const struct flash *flash,
                                  struct identity *identity);

/* Check that the values of an intact configuration are consistent. */
typedef bool store_judge(void *ctx, const struct config *config);

/**
 * Read the configuration in force: the newest copy that is intact and accepted.
 *
 * @param judge  asked about the newer intact copy, then about the other one;
 *   NULL: every intact copy is accepted
 * @return false when there is no such copy; `config` then has the defaults
 */
MUST_USE bool store_read_config(const struct flash *flash, store_judge *judge,
                                void *ctx, struct config *config);

/**
 * Whether a configuration was written, and no copy of it can be used: the
 * defaults, which are in force, say less than its owner has demanded.
 */
bool store_has_lost_config(const struct flash *flash, store_judge *judge,
                           void *ctx);

/**
 * Whether no copy can be used, but one is intact: other firmware may know what
 * it says.
 */
bool store_has_unknown_config(const struct flash *flash, store_judge *judge,
                              void *ctx);

enum store_saved {
    STORE_SAVED,       /* both copies hold it */
    STORE_SAVED_ONCE,  /* it is in force, but the flash did not take the other
                        * copy */
    STORE_SAVE_FAILED, /* the old configuration stays in force */
};

/**
 * Write `config` over the copy that is not in force, and then over the other
 * one, so that a damaged copy never brings the old configuration back.  Its
 * sequence becomes one more than the higher sequence of both copies.  The first
 * copy is read back before the other one is erased, so that after a power cut
 * either the old or the new configuration is in force, also if the flash has
 * taken wrong bits.
 *
 * @param judge  as in store_read_config(); a copy that it refuses is
 *   overwritten
 */
MUST_USE enum store_saved store_write_config(const struct flash *flash,
                                             store_judge *judge, void *ctx,
                                             struct config *config);

enum store_repair {
    STORE_REPAIR_NONE, /* nothing was written */
    STORE_REPAIR_DONE, /* the other copy was damaged, older, or missing, and
                        * was written again */
    STORE_REPAIR_FAILED,
};

/**
 * Make both copies say what the one in force says.  A copy stays as it is if
 * it is newer than the one in force and was refused, or if it has values that
 * only newer firmware knows, which may run again.
 */
MUST_USE enum store_repair store_repair_config(const struct flash *flash,
                                               store_judge *judge, void *ctx);

/**
 * Count this boot.  Call this once after every reset.
 *
 * @param generation  set to a number that is higher than that of every earlier
 *   boot of this drive
 * @param fresh       the first number, when no boot was counted before or when
 *   both sectors are damaged: random, below 2^31
 * @return false when the flash refuses the write; `generation` is then `fresh`
 */
MUST_USE bool store_count_boot(const struct flash *flash, uint32_t fresh,
                               uint32_t *generation);

#endif
