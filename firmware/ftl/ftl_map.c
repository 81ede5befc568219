/* SPDX-License-Identifier: BSD-2-Clause */
/* Which places of the flash hold something that must not be lost. */
#include "firmware/ftl/ftl_internal.h"

bool ftl_map_is_valid(const struct ftl *ftl, uint32_t place)
{
    return (ftl->valid[place / 8] & BIT(place % 8)) != 0;
}

void ftl_map_set_valid(struct ftl *ftl, uint32_t place)
{
    ASSERT(!ftl_map_is_valid(ftl, place));
    ftl->valid[place / 8] |= (uint8_t)BIT(place % 8);
    ftl->superblocks[ftl_place_superblock(&ftl->layout, place)].valid++;
}

void ftl_map_clear_valid(struct ftl *ftl, uint32_t place)
{
    if (place == FTL_NOWHERE) {
        return;
    }
    ASSERT(ftl_map_is_valid(ftl, place));
    ftl->valid[place / 8] &= (uint8_t)~BIT(place % 8);
    ftl->superblocks[ftl_place_superblock(&ftl->layout, place)].valid--;
}

void ftl_map_trim_place(struct ftl *ftl, uint32_t place)
{
    if (place == FTL_NOWHERE) {
        return;
    }
    ftl_map_clear_valid(ftl, place);
    ftl->superblocks[ftl_place_superblock(&ftl->layout, place)].trim_accepted =
        ftl->accepted;
}
