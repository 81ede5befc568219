/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Loading: a mount takes the map from the latest checkpoint that is complete.
 *
 * A mount does not trust what the checkpoint says about superblocks that have
 * changed since.  It has looked at the first wordline of all blocks before, and
 * reads the superblocks in which this wordline is erased, lost or newer.
 * Contents of the other superblocks that are not in the map of the checkpoint
 * were superseded by durable contents, so the mount misses nothing there.
 */
#include "firmware/ftl/ftl_checkpoint.h"
#include "firmware/ftl/ftl_internal.h"

#include <string.h>

/* The latest checkpoint with a smaller number than `below`. */
static bool find_checkpoint(struct ftl *ftl, uint64_t below)
{
    struct ftl_checkpoint *checkpoint = &ftl->checkpoint;
    uint32_t planes = ftl->layout.geometry.planes;
    size_t all =
        (size_t)ftl->layout.superblocks * ftl->layout.geometry.dies * planes;

    checkpoint->row = 0;
    for (size_t i = 0; i < all; i++) {
        uint64_t probe = ftl->mount.probes[i];
        uint64_t row = probe & ~FTL_PROBE_CHECKPOINT;

        if (probe < FTL_PROBE_PARITY && (probe & FTL_PROBE_CHECKPOINT) != 0 &&
            row < below && row > checkpoint->row) {
            checkpoint->row = row;
            checkpoint->next =
                (uint32_t)(i / planes / ftl->layout.geometry.dies);
        }
    }
    checkpoint->next_row = 0;
    checkpoint->pieces = 0;
    checkpoint->is_header_good = false;
    checkpoint->is_at_end = false;
    return checkpoint->row != 0;
}

bool ftl_checkpoint_find(struct ftl *ftl)
{
    ftl->checkpoint.free_rows =
        (uint32_t)(BIT(ftl_checkpoint_rows(&ftl->layout)) - 1);
    return find_checkpoint(ftl, UINT64_MAX);
}

/* Read the next row. */
static void read_row(struct ftl *ftl, struct ftl_request *request,
                     uint8_t planes)
{
    struct ftl_checkpoint *checkpoint = &ftl->checkpoint;
    uint32_t slot = (uint32_t)__builtin_ctz(checkpoint->free_rows);
    uint32_t first = request->row * ftl->layout.row_units;

    checkpoint->free_rows &= ~BIT(slot);
    request->op = (uint16_t)slot;
    for (uint32_t i = 0; i < ftl->layout.row_units; i++) {
        struct ftl_flash_unit unit;

        ftl_layout_unit(&ftl->layout, i, &unit);
        if ((planes & BIT(unit.plane)) != 0) {
            ftl_request_add(
                ftl, request, first + i,
                &(struct ftl_flash_unit){
                    .data = ftl_checkpoint_row_data(ftl, slot, i),
                    .length = FTL_UNIT_DATA,
                    .system = request->system[request->flash.num_units],
                });
        }
    }
    checkpoint->requests++;
    ftl_request_send(ftl, request);
}

void ftl_checkpoint_load_done(struct ftl *ftl, struct ftl_request *request,
                              enum ftl_flash_status status)
{
    struct ftl_checkpoint *checkpoint = &ftl->checkpoint;
    uint32_t erased = 0;

    checkpoint->requests--;
    checkpoint->free_rows |= BIT(request->op);
    if (status == FTL_FLASH_DEAD) {
        checkpoint->is_at_end = true; /* Some of it is missing. */
        return;
    }
    if (status != FTL_FLASH_OK) {
        ftl->state = FTL_FAILED;
        return;
    }
    for (uint32_t i = 0; i < request->flash.num_units; i++) {
        struct ftl_system system;

        erased += request->units[i].status == FTL_UNIT_ERASED;
        if (request->units[i].status == FTL_UNIT_GOOD &&
            ftl_system_parse(&system, request->system[i]) &&
            system.kind == FTL_KIND_CHECKPOINT &&
            system.version == checkpoint->row) {
            ftl_checkpoint_take_piece(ftl, system.number,
                                      request->units[i].data);
        }
    }
    checkpoint->is_at_end |= erased == request->flash.num_units;
}

static bool is_loaded(const struct ftl *ftl)
{
    return ftl->checkpoint.is_header_good &&
           ftl->checkpoint.pieces == ftl_checkpoint_pieces(ftl);
}

/* @return whether there was a row to read */
static bool load_rows(struct ftl *ftl)
{
    struct ftl_checkpoint *checkpoint = &ftl->checkpoint;
    bool any = false;

    while (checkpoint->free_rows != 0 && !checkpoint->is_at_end &&
           !is_loaded(ftl) &&
           checkpoint->next_row != ftl->layout.superblock_rows) {
        struct ftl_request *request = ftl_request_take(ftl, FTL_REQUEST_LOAD);
        uint8_t planes;

        if (request == NULL) {
            break;
        }
        request->row = checkpoint->next * ftl->layout.superblock_rows +
                       checkpoint->next_row++;
        ftl_layout_row(&ftl->layout, request->row, &request->flash);
        planes =
            ftl_mount_planes(ftl, request->flash.block, request->flash.die);
        if (planes == 0) {
            ftl_request_free(ftl, request);
        } else {
            read_row(ftl, request, planes);
        }
        any = true;
    }
    return any;
}

/* Whether a superblock that was closed still has the same contents, as far as
 * the first wordline of its blocks shows. */
static bool is_unchanged(struct ftl *ftl, uint32_t superblock)
{
    const struct ftl_geometry *geometry = &ftl->layout.geometry;
    bool has_any = false;

    for (uint32_t die = 0; die < geometry->dies; die++) {
        uint32_t at = superblock * geometry->dies + die;
        uint8_t planes = ftl_good_planes(ftl, superblock, die);

        for (uint32_t plane = 0; plane < geometry->planes; plane++) {
            uint64_t probe = ftl->mount.probes[at * geometry->planes + plane];

            if ((planes & BIT(plane)) == 0) {
                continue;
            }
            if (probe == FTL_PROBE_PARITY) {
                continue; /* It has no number. */
            }
            if (probe == FTL_PROBE_ERASED || probe > ftl->checkpoint.row) {
                return false;
            }
            ftl->superblocks[superblock].last_row =
                MAX(ftl->superblocks[superblock].last_row, probe);
            has_any = true;
        }
    }
    return has_any;
}

/* Take over what has been loaded. @return false when it is damaged */
static bool accept_checkpoint(struct ftl *ftl)
{
    struct ftl_checkpoint *checkpoint = &ftl->checkpoint;
    uint64_t key = checkpoint->row << FTL_VERSION_SHIFT | FTL_ATTEMPTS_MAX;

    for (uint32_t i = 0; i < ftl->entries; i++) {
        if (ftl->map[i] != FTL_NOWHERE && ftl->map[i] >= ftl->layout.places) {
            return false;
        }
    }
    ftl_health_take_planes(ftl, checkpoint->planes);
    ftl->is_read_only |= checkpoint->was_read_only;
    for (uint32_t i = 0; i < ftl->layout.superblocks; i++) {
        ftl->superblocks[i].is_known =
            checkpoint->table[i] != 0 && is_unchanged(ftl, i);
    }
    for (uint32_t i = 0; i < ftl->entries; i++) {
        uint32_t place = ftl->map[i];

        if (place == FTL_NOWHERE ||
            ftl->superblocks[ftl_place_superblock(&ftl->layout, place)]
                .is_known) {
            ftl->mount.versions[i] = key;
        } else {
            ftl->map[i] = FTL_NOWHERE;
        }
    }
    checkpoint->superblock = checkpoint->next;
    checkpoint->next = FTL_NOWHERE;
    ftl->superblocks[checkpoint->superblock].is_known = true;
    ftl->mount.last_row = checkpoint->row;
    ftl->mount.last_normal_row = checkpoint->row;
    ftl->mount.checkpoint_row = checkpoint->row;
    return true;
}

bool ftl_checkpoint_load(struct ftl *ftl, bool *is_done)
{
    struct ftl_checkpoint *checkpoint = &ftl->checkpoint;

    *is_done = false;
    if (load_rows(ftl)) {
        return true;
    }
    if (checkpoint->requests != 0) {
        return false;
    }
    if (is_loaded(ftl) && accept_checkpoint(ftl)) {
        *is_done = true;
        return true;
    }
    memset(ftl->map, 0xff, ftl->entries * sizeof(ftl->map[0]));
    if (!find_checkpoint(ftl, checkpoint->row)) {
        checkpoint->next = FTL_NOWHERE;
        *is_done = true;
    }
    return true;
}
