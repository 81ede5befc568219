/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The capacity, which is stored on the flash.
 *
 * The capacity follows from the geometry and the blocks that the factory has
 * marked.  If a die does not answer at the start, its marks cannot be read.
 * Therefore all pages and the headers of checkpoints have the number of logical
 * units.  After the first mount of an array, such a page is written.  If the
 * configuration has only an upper limit, the mount takes the number that it
 * finds, and begins again if this is another number.  If the configuration has
 * the number itself, and the flash has another one, the mount fails.
 */
#include "storage/ftl/background/background.h"
#include "storage/ftl/map/ftl_keep.h"
#include "storage/ftl/pages/pages.h"
#include "storage/ftl/space/space.h"

void ftl_capacity_take_page(struct ftl_background_floor *ftl,
                            const uint8_t *meta)
{
    uint32_t units;

    if (ftl_capacity_parse(meta, &units)) {
        ftl->mount.has_capacity = true;
        ftl_capacity_take(ftl, units);
    }
}

void ftl_capacity_decide(struct ftl_background_floor *ftl)
{
    if (ftl->config.is_capacity_estimated) {
        ftl->config.is_capacity_estimated = false;
        ftl_keep_start(ftl);
    }
}

/* The blocks that hosts wrote are there, but where the map says that a page is,
 * there may be other contents. */
static void refuse_other_capacity(struct ftl_background_floor *ftl,
                                  uint32_t units)
{
    if (units != ftl->config.logical_units) {
        ftl->mount.is_other_capacity = true;
        ftl->state = FTL_FAILED;
    }
}

void ftl_capacity_take(struct ftl_background_floor *ftl, uint32_t units)
{
    if (units == 0) {
        return;
    }
    if (!ftl->config.is_capacity_estimated) {
        refuse_other_capacity(ftl, units);
        return;
    }
    if (units > ftl->config.logical_units) {
        return;
    }
    if (units == ftl->config.logical_units) {
        ftl_capacity_decide(ftl);
    } else {
        ftl->mount.capacity = units;
        ftl->mount.is_in_vain = true;
    }
}

/* The end of the write buffer's memory must not move, because the earlier start
 * has left the head there.  No slot is in use yet. */
void ftl_capacity_change(struct ftl_background_floor *ftl)
{
    uint8_t *end =
        (uint8_t *)ftl->config.keep + ftl_keep_divide(&ftl->map_floor, NULL);

    if (ftl->mount.capacity == 0) {
        return;
    }
    ftl->config.logical_units = ftl->mount.capacity;
    ftl->mount.capacity = 0;
    ftl_set_entries(&ftl->pages_floor);
    ftl_init_slots(&ftl->pages_floor);
    ftl->config.keep = end - ftl_keep_divide(&ftl->map_floor, NULL);
    (void)ftl_keep_divide(&ftl->map_floor, ftl->config.keep);
    ftl_capacity_decide(ftl);
}

void ftl_capacity_record(struct ftl_background_floor *ftl)
{
    if (ftl->config.records_capacity && !ftl->mount.has_capacity) {
        ftl->mount.has_capacity = true;
        ftl->records_capacity = true;
        ftl_health_write(&ftl->space_floor);
    }
}

/* The page is needed after a die has died, so it must survive the loss of the
 * die that holds it: complete its stripe. */
bool ftl_capacity_step(struct ftl_background_floor *ftl)
{
    if (!ftl->records_capacity || ftl->health_changes != 0 ||
        ftl->buffer.dirty[FTL_POOL_TRIM].count != 0) {
        return false;
    }
    ftl->records_capacity = false;
    if (ftl->layout.has_parity) {
        ftl_superblock_end_all(&ftl->space_floor);
    }
    return true;
}

uint32_t ftl_capacity_units(const struct ftl_background_floor *ftl)
{
    return ftl->config.logical_units;
}

bool ftl_capacity_is_final(const struct ftl_background_floor *ftl)
{
    return !ftl->config.is_capacity_estimated || ftl->state != FTL_MOUNTING;
}
