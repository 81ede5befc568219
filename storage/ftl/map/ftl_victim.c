/* SPDX-License-Identifier: BSD-2-Clause */
/* What rows need to know of the superblock that garbage collection moves. */
#include "storage/ftl/map/map.h"

bool ftl_victim_has_durable_trims(const struct ftl_map_floor *ftl,
                                  uint32_t superblock)
{
    return ftl_slot_is_pool_durable(&ftl->buffer, FTL_POOL_TRIM,
                                    ftl->superblocks[superblock].trim_accepted);
}

uint32_t ftl_victim_stream(const struct ftl_map_floor *ftl)
{
    uint8_t cause = ftl->collection.cause;

    return cause == FTL_CAUSE_MOUNT
               ? (uint32_t)FTL_MOVED_STREAM
               : (uint32_t)FTL_MOVED_STREAM +
                     ftl->streaming->choose((enum ftl_cause)cause);
}

bool ftl_victim_is_at_end(const struct ftl_map_floor *ftl)
{
    return ftl->collection.victim != FTL_NOWHERE &&
           ftl->collection.next_row == ftl->layout.superblock_rows &&
           ftl->collection.reads == 0;
}

bool ftl_victim_waits_for_trims(const struct ftl_map_floor *ftl)
{
    return ftl->state == FTL_READY && ftl_victim_is_at_end(ftl) &&
           ftl->collection.slots == 0 &&
           !ftl_victim_has_durable_trims(ftl, ftl->collection.victim);
}
