/* SPDX-License-Identifier: BSD-2-Clause */
/* Entries of the map. */
#ifndef ESSD_FTL_ENTRY_H
#define ESSD_FTL_ENTRY_H

#include "storage/ftl/base/ftl_layout.h"

/*
 * ---- The map.  An entry is one of these:
 *  - a place on the flash
 *  - FTL_NOWHERE: the logical unit reads as zeroes
 *  - FTL_IN_SLOT | the index of a slot
 *  - FTL_LOST | a place: the contents of the logical unit are lost, which the
 *    unit at this place records.  Reads fail until a host writes or trims it.
 *  - FTL_LOST_NOWHERE: the contents are lost, and no unit on the flash records
 *    that, except for a checkpoint
 */
#define FTL_IN_SLOT      UINT32_C(0x80000000)
#define FTL_LOST         UINT32_C(0x40000000)
#define FTL_LOST_NOWHERE (FTL_LOST | FTL_PLACES_MAX)

static inline bool ftl_is_place(uint32_t entry)
{
    return (entry & (FTL_IN_SLOT | FTL_LOST)) == 0;
}

static inline bool ftl_is_lost(uint32_t entry)
{
    return (entry & (FTL_IN_SLOT | FTL_LOST)) == FTL_LOST;
}

/* The place that an entry names, with or without FTL_LOST; FTL_NOWHERE if it
 * names none. */
static inline uint32_t ftl_entry_place(uint32_t entry)
{
    return (entry & FTL_IN_SLOT) != 0 || entry == FTL_LOST_NOWHERE
               ? FTL_NOWHERE
               : entry & ~FTL_LOST;
}

static inline bool ftl_is_in_slot(uint32_t entry)
{
    return (entry & FTL_IN_SLOT) != 0 && entry != FTL_NOWHERE;
}

#endif
