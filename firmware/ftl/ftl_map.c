/* SPDX-License-Identifier: BSD-2-Clause */
/* Which places of the flash hold something that must not be lost. */
#include "firmware/ftl/ftl_internal.h"

bool ftl_map_names(const struct ftl *ftl, uint32_t number, uint32_t place)
{
    uint32_t entry = ftl->map[number];

    if (!ftl_is_in_slot(entry)) {
        return ftl_entry_place(entry) == place;
    }
    for (uint16_t slot = (uint16_t)entry; slot != FTL_LIST_END;
         slot = ftl->slots[slot].follows) {
        if (ftl_entry_place(ftl->slots[slot].old_place) == place) {
            return true;
        }
    }
    return false;
}

uint32_t ftl_map_find(const struct ftl *ftl, uint32_t place)
{
    for (uint32_t i = 0; i < ftl->entries; i++) {
        if (ftl_entry_place(ftl->map[i]) == place) {
            return i;
        }
    }
    return FTL_NOWHERE;
}

bool ftl_map_is_valid(const struct ftl *ftl, uint32_t place)
{
    return (ftl->valid[place / 8] & BIT(place % 8)) != 0;
}

void ftl_map_set_valid(struct ftl *ftl, uint32_t entry)
{
    uint32_t place = ftl_entry_place(entry);

    ASSERT(!ftl_map_is_valid(ftl, place));
    ftl->valid[place / 8] |= (uint8_t)BIT(place % 8);
    ftl->superblocks[ftl_place_superblock(&ftl->layout, place)].valid++;
}

void ftl_map_clear_valid(struct ftl *ftl, uint32_t entry)
{
    uint32_t place = ftl_entry_place(entry);

    if (place == FTL_NOWHERE) {
        return;
    }
    ASSERT(ftl_map_is_valid(ftl, place));
    ftl->valid[place / 8] &= (uint8_t)~BIT(place % 8);
    ftl->superblocks[ftl_place_superblock(&ftl->layout, place)].valid--;
}

void ftl_map_trim_place(struct ftl *ftl, uint32_t entry)
{
    uint32_t place = ftl_entry_place(entry);

    if (place == FTL_NOWHERE) {
        return;
    }
    ftl_map_clear_valid(ftl, place);
    ftl->superblocks[ftl_place_superblock(&ftl->layout, place)].trim_accepted =
        ftl->accepted;
}
