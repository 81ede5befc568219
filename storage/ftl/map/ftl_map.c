/* SPDX-License-Identifier: BSD-2-Clause */
/* Which places of the flash hold something that must not be lost. */
#include "storage/ftl/map/map.h"

bool ftl_map_names(const struct ftl_map_floor *ftl, uint32_t number,
                   uint32_t place)
{
    uint32_t entry = ftl->map[number];

    if (!ftl_is_in_slot(entry)) {
        return ftl_entry_place(entry) == place;
    }
    for (uint16_t slot = (uint16_t)entry; slot != FTL_LIST_END;
         slot = ftl->buffer.slots[slot].follows) {
        if (ftl_entry_place(ftl->buffer.slots[slot].old_place) == place) {
            return true;
        }
    }
    return false;
}

bool ftl_map_expects(const struct ftl_map_floor *ftl,
                     const struct ftl_request *request, uint32_t entry,
                     uint32_t place, const struct ftl_system *system)
{
    uint32_t pages = ftl->entries - ftl->config.logical_units;

    (void)request;
    (void)entry;
    if (system->kind == FTL_KIND_DATA) {
        return system->number < ftl->config.logical_units &&
               ftl_map_names(ftl, system->number, place);
    }
    return system->kind == FTL_KIND_TRIM && system->number < pages &&
           ftl_map_names(ftl, ftl->config.logical_units + system->number,
                         place);
}

void ftl_map_trim_place(struct ftl_map_floor *ftl, uint32_t entry)
{
    uint32_t place = ftl_entry_place(entry);

    if (place == FTL_NOWHERE) {
        return;
    }
    ftl_map_clear_valid(ftl, place);
    ftl->superblocks[ftl_place_superblock(&ftl->layout, place)].trim_accepted =
        ftl->accepted;
}
