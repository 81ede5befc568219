/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The blocks in flash as firmware wants them: read the good copy, write the
 * other one, count boots.
 * Reference: docs/hardware/flash.md
 */
#ifndef ESSD_STORE_STORE_H
#define ESSD_STORE_STORE_H

#include "firmware/drivers/flash.h"
#include "firmware/store/config.h"
#include "firmware/store/identity.h"

/* @return false when neither copy is good: this drive was never made */
MUST_USE bool store_read_identity(const struct flash *flash,
                                  struct identity *identity);

/* Whether an intact configuration can be used: its values go together. */
typedef bool store_judge(void *ctx, const struct config *config);

/**
 * The newer copy that is intact and good counts.
 *
 * @param judge  asked about the newer intact copy, then about the other one;
 *               NULL: every intact one is good
 * @return false when neither copy counts: `config` has the defaults
 */
MUST_USE bool store_read_config(const struct flash *flash, store_judge *judge,
                                void *ctx, struct config *config);

/**
 * Write `config` over the copy that does not count now; its sequence becomes
 * one more than the higher of both.  A power cut leaves the old one or the new
 * one.
 *
 * @param judge  as in store_read_config(): what is not good is written over
 * @return false when the flash does not take it; the old one still counts
 */
MUST_USE bool store_write_config(const struct flash *flash, store_judge *judge,
                                 void *ctx, struct config *config);

/**
 * Count this boot, once after every reset.
 *
 * @param generation  set to a number no earlier boot of this drive got, and
 *                    higher than all of them
 * @param fresh       where to begin when nothing was ever counted, or both
 *                    sectors are damaged: something random, below 2^31
 * @return false when the flash does not take it: `generation` is `fresh`
 */
MUST_USE bool store_count_boot(const struct flash *flash, uint32_t fresh,
                               uint32_t *generation);

#endif
