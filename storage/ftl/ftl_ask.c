/* SPDX-License-Identifier: BSD-2-Clause */
/* What the owner of the translation layer asks and says, for the floor that it
 * is meant for: see ftl.h. */
#include "storage/ftl/background/background.h"
#include "storage/ftl/background/ftl_checkpoint.h"
#include "storage/ftl/io/io.h"
#include "storage/ftl/map/map.h"
#include "storage/ftl/rows/rows.h"
#include "storage/ftl/space/space.h"
#include "storage/ftl/state.h"

bool ftl_is_storage_failing(const struct ftl *ftl)
{
    return ftl->hold.num_refused != 0;
}

bool ftl_is_read_only(const struct ftl *ftl)
{
    return ftl->is_read_only;
}

uint32_t ftl_failed_planes(const struct ftl *ftl)
{
    size_t bytes = (size_t)ftl->layout.superblocks * ftl->layout.geometry.dies;
    uint32_t planes = 0;

    for (size_t i = 0; i < bytes; i++) {
        planes += (uint32_t)__builtin_popcount(ftl->failed_planes[i]);
    }
    return planes;
}

void ftl_erase_counts(const struct ftl *ftl, struct ftl_erase_counts *counts)
{
    uint64_t sum = 0;
    uint32_t used = 0;

    *counts = (struct ftl_erase_counts){.least = UINT32_MAX};
    for (uint32_t i = 0; i < ftl->layout.superblocks; i++) {
        if (ftl->superblocks[i].state == FTL_SUPERBLOCK_RETIRED) {
            continue;
        }
        counts->least = MIN(counts->least, ftl->wear[i]);
        counts->most = MAX(counts->most, ftl->wear[i]);
        sum += ftl->wear[i];
        used++;
    }
    if (used == 0) {
        counts->least = 0;
    } else {
        counts->average = (uint32_t)(sum / used);
    }
}

uint32_t ftl_distrusted_dies(const struct ftl *ftl)
{
    return ftl->dies.num_distrusted;
}

bool ftl_is_quiet(const struct ftl *ftl)
{
    return ftl_is_flash_quiet(&ftl->map_floor) &&
           ftl->io.free_ops.count == ftl->config.num_ops;
}

void ftl_complete_stripes(struct ftl *ftl)
{
    ftl_superblock_end_all(&ftl->space_floor);
}

bool ftl_is_adopting(const struct ftl *ftl)
{
    return ftl_keep_is_adopting(&ftl->background_floor);
}

uint32_t ftl_capacity(const struct ftl *ftl)
{
    return ftl_capacity_units(&ftl->background_floor);
}

bool ftl_capacity_is_known(const struct ftl *ftl)
{
    return ftl_capacity_is_final(&ftl->background_floor);
}

bool ftl_is_saved(const struct ftl *ftl)
{
    return ftl_power_is_saved(&ftl->background_floor);
}

void ftl_power_fails(struct ftl *ftl)
{
    ftl_power_begin(&ftl->background_floor);
}

bool ftl_was_saved(const struct ftl *ftl, uint32_t start)
{
    return ftl_power_was_saved(&ftl->background_floor, start);
}

bool ftl_is_stopped(const struct ftl *ftl)
{
    return ftl_checkpoint_is_stopped(&ftl->background_floor);
}

bool ftl_makes_space(const struct ftl *ftl)
{
    return ftl_checkpoint_makes_space(&ftl->background_floor);
}

void ftl_stop(struct ftl *ftl)
{
    ftl_checkpoint_stop(&ftl->background_floor);
}

bool ftl_note_lost_word(struct ftl *ftl, const uint8_t *word)
{
    return ftl_damage_note_lost(&ftl->rows_floor, word);
}

bool ftl_note_patrolled_word(struct ftl *ftl, const uint8_t *word)
{
    return ftl_damage_note_patrolled(&ftl->rows_floor, word);
}

bool ftl_stripes_are_complete(const struct ftl *ftl)
{
    return ftl_parity_is_complete(&ftl->rows_floor);
}

void ftl_note_failed_check(struct ftl *ftl, const struct ftl_move *move,
                           enum ftl_check check)
{
    ftl_protect_note_failed(&ftl->io_floor, move, check);
}

bool ftl_submit(struct ftl *ftl, const struct media_io *io)
{
    return ftl_io_submit(&ftl->io_floor, io);
}

void ftl_submit_next(struct ftl *ftl, const struct media_io *io)
{
    ftl_io_submit_next(&ftl->io_floor, io);
}

bool ftl_withdraw_next(struct ftl *ftl)
{
    return ftl_io_withdraw_next(&ftl->io_floor);
}
