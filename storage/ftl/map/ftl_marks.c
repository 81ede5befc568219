/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Marks: blocks that a host has made unreadable with Write Uncorrectable.
 *
 * A unit has a mark for each of its blocks of 512 bytes.  The marks are in the
 * system bytes of the unit on flash, and in its slot, so they change together
 * with data and metadata.  A marked block has zeroes, and metadata of FFh.
 *
 * Reads need the system bytes of the units that they read only if some unit has
 * or had marks.  The translation layer remembers this until a wipe: a flag in
 * checkpoints says it, and a mount sees the marks of the units that it reads.
 */
#include "storage/ftl/map/map.h"

/* The marks of a part of a unit. */
static uint8_t part_mask(uint32_t offset, uint32_t length)
{
    uint32_t count = length >> FTL_SECTOR_SHIFT;

    return (uint8_t)((BIT(count) - 1) << (offset >> FTL_SECTOR_SHIFT));
}

uint8_t ftl_marks_of(const struct ftl_flash_unit *unit)
{
    struct ftl_system system;

    return unit->system != NULL && ftl_system_parse(&system, unit->system)
               ? system.marks
               : 0;
}

void ftl_marks_check(struct ftl_op *op, uint8_t marks, uint32_t offset,
                     uint32_t length)
{
    if (__builtin_expect((marks & part_mask(offset, length)) != 0, 0) &&
        op->status != MEDIA_READ_ERROR) {
        op->status = MEDIA_MARKED;
    }
}

void ftl_marks_read_done(struct ftl_op *op, const struct ftl_request *request)
{
    if (__builtin_expect(request->units[0].system == NULL, 1)) {
        return;
    }
    for (uint32_t i = 0; i < request->flash.num_units; i++) {
        const struct ftl_flash_unit *unit = &request->units[i];

        /* If pieces divide a unit, the part need not be whole blocks. */
        uint32_t first = unit->offset >> FTL_SECTOR_SHIFT;
        uint32_t last = (unit->offset + unit->length - 1u) >> FTL_SECTOR_SHIFT;

        ftl_marks_check(op, ftl_marks_of(unit), first << FTL_SECTOR_SHIFT,
                        (last - first + 1) << FTL_SECTOR_SHIFT);
    }
}

void ftl_marks_write(struct ftl_map_floor *ftl, const struct ftl_op *op,
                     uint16_t slot, uint32_t offset, uint32_t length)
{
    uint8_t mask = part_mask(offset, length);
    uint8_t *marks = &ftl->buffer.slots[slot].marks;

    if (op->io.op == MEDIA_WRITE_UNCORRECTABLE) {
        ftl->has_marks = true;
        *marks |= mask;
    } else {
        *marks &= (uint8_t)~mask;
    }
}
