/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Probes: a mount reads one unit of each plane of the first wordline of all
 * blocks.  They show which blocks are erased, which superblocks have changed
 * since the last checkpoint, and where the checkpoints are.
 */
#include "storage/ftl/mount/mount.h"
#include "storage/ftl/ops/ops.h"
#include "storage/ftl/space/ftl_findings.h"
#include "storage/ftl/space/space.h"

bool ftl_mount_probe_block(struct ftl_mount_floor *ftl,
                           struct ftl_request *request)
{
    const struct ftl_layout *layout = &ftl->layout;
    struct ftl_flash_op *flash = &request->flash;
    uint16_t die = flash->die;
    uint8_t planes = 0;

    for (; flash->block != layout->superblocks; flash->block++) {
        planes = ftl_mount_planes(&ftl->space_floor, flash->block, die);
        if (planes != 0) {
            break;
        }
    }
    if (planes == 0) {
        return false;
    }
    flash->num_units = 0;
    for (uint32_t i = 0; i < layout->row_units; i++) {
        struct ftl_flash_unit unit;

        ftl_layout_unit(layout, i, &unit);
        if (unit.page == 0 && unit.unit == 0 &&
            (planes & BIT(unit.plane)) != 0) {
            ftl_request_add(&ftl->layout, request,
                            ftl_place(layout, flash->block, die, i),
                            &(struct ftl_flash_unit){
                                .system = request->system[flash->num_units]});
        }
    }
    flash->planes = planes;
    ftl_request_send(&ftl->ops, request);
    return true;
}

static uint64_t read_probe(const struct ftl_request *request, uint32_t index)
{
    struct ftl_system system;

    if (request->units[index].status == FTL_UNIT_ERASED) {
        return FTL_PROBE_ERASED;
    }
    if (request->units[index].status != FTL_UNIT_GOOD) {
        return FTL_PROBE_LOST;
    }
    if (ftl_system_is_parity(request->system[index])) {
        return FTL_PROBE_PARITY;
    }
    if (!ftl_system_parse(&system, request->system[index])) {
        return FTL_PROBE_LOST;
    }
    return system.kind == FTL_KIND_CHECKPOINT
               ? system.row | FTL_PROBE_CHECKPOINT
               : system.row;
}

bool ftl_mount_probe_done(struct ftl_mount_floor *ftl,
                          struct ftl_request *request,
                          enum ftl_flash_status status)
{
    const struct ftl_geometry *geometry = &ftl->layout.geometry;
    struct ftl_flash_op *flash = &request->flash;
    uint32_t at = (uint32_t)flash->block * geometry->dies + flash->die;

    if (status == FTL_FLASH_DEAD) {
        ftl_dies_note_dead(&ftl->space_floor, flash->die);
    } else if (status != FTL_FLASH_OK) {
        ftl->state = FTL_FAILED;
    }
    for (uint32_t i = 0; i < flash->num_units; i++) {
        ftl->mount.probes[at * geometry->planes + request->units[i].plane] =
            status == FTL_FLASH_OK ? read_probe(request, i) : FTL_PROBE_PARITY;
    }
    flash->block++;
    if (ftl->state == FTL_MOUNTING && ftl_mount_probe_block(ftl, request)) {
        return true;
    }
    ftl->mounting.requests--;
    return false;
}
