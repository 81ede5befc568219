/* SPDX-License-Identifier: BSD-2-Clause */
/* What is damaged in the description of the write buffer is found at a start,
 * and repaired from its other copy. */
#ifndef ESSD_FTL_KEEP_REPAIR_H
#define ESSD_FTL_KEEP_REPAIR_H

#include "storage/ftl/background/background_floor.h"

/**
 * Look at both copies of a buffer's entry.  If only one copy is good, replace
 * the other one by it.
 * @return whether the entry describes contents
 */
MUST_USE bool ftl_keep_repair_entry(struct ftl_background_floor *ftl,
                                    uint16_t buffer);

/** The same for a word of trims.  If both copies are damaged, the word has no
 * trims from now on.  @return its bits */
MUST_USE uint32_t ftl_keep_repair_trims(struct ftl_background_floor *ftl,
                                        uint32_t number);

/** Write both heads, for ftl->keep.generation and the number of this start. */
void ftl_keep_write_heads(struct ftl_background_floor *ftl);

/**
 * Whether the previous start has left a write buffer with the same sizes as
 * those of this start.  If so, write the number of this start into the heads,
 * and set ftl->keep.generation.  A buffer of an older start does not count:
 * firmware that does not know this memory may have run since then, and hosts
 * may have replaced what the buffer holds.
 */
MUST_USE bool ftl_keep_find_head(struct ftl_background_floor *ftl);

/** Whether there is a head of any firmware. */
MUST_USE bool ftl_keep_has_any_head(const struct ftl_keep *keep);

#endif
