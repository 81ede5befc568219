/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Program and erase of a NAND array: what is written to storage when they begin
 * and when they end, and what becomes of the blocks.
 */
#include "hw-model/nand/nand_array_internal.h"

#include <string.h>

void nand_op_set_busy(struct nand_array *array, const struct nand_op *op,
                      bool is_busy)
{
    for (unsigned int plane = nand_op_plane(op, 0); plane < NAND_OP_PLANES;
         plane = nand_op_plane(op, plane + 1)) {
        struct nand_block *block = nand_op_state(array, op, plane);

        if (is_busy) {
            block->flags |= NAND_BLOCK_BUSY;
        } else {
            block->flags &= (uint8_t)~NAND_BLOCK_BUSY;
        }
    }
}

/* Whether the operation fails in this plane. */
static bool plane_fails(struct nand_array *array, const struct nand_op *op,
                        unsigned int plane)
{
    const struct nand_profile *profile = array->file.profile;
    const struct nand_block *block = nand_op_state(array, op, plane);
    struct nand_fault hit;
    struct nand_spot spot = {
        .seed = array->file.seed,
        .block = nand_op_block(array, op, plane),
        .number = block->number,
        .wordline = op->wordline,
    };

    if (nand_inject_event(array, op, plane, NULL, false, &hit) &&
        hit.effect == NAND_EFFECT_FAIL) {
        return true;
    }
    if (op->kind == NAND_OP_PROGRAM) {
        return nand_program_fails(profile, &spot, block->wear);
    }
    spot.number++;
    spot.wordline = 0;
    return (block->flags & NAND_BLOCK_FAILED) != 0 ||
           nand_erase_fails(profile, &spot, block->wear);
}

static void emit_trailer(struct nand_op *op, unsigned int i, uint64_t place,
                         uint32_t number, const uint8_t *meta,
                         const uint8_t *system)
{
    struct nand_trailer trailer = {
        .time_ns = op->work.time_ns,
        .number = number,
        .data_crc = nand_data_crc(nand_unit_crc_start(place), 0,
                                  op->units[i].data, NAND_UNIT_DATA),
    };

    trailer.rest_crc = nand_rest_crc(place, meta, system, &trailer);
    nand_trailer_emit(&trailer, op->work.trailers[i]);
}

static void emit_wordline(struct nand_array *array, struct nand_op *op,
                          unsigned int plane, bool is_end)
{
    uint32_t index = nand_op_block(array, op, plane);

    nand_wordline_emit(
        &(struct nand_wordline){.block = index,
                                .number = array->blocks[index].number,
                                .wordline = op->wordline,
                                .pages = nand_array_pages(array, op->was_slc),
                                .time_ns = op->work.time_ns},
        is_end, op->work.headers[plane][is_end]);
}

/* Add a unit to the vectors of its slot. */
static void add_unit(struct nand_array *array, struct nand_op *op,
                     unsigned int i, uint32_t block, uint32_t slot_unit)
{
    const struct nand_unit *unit = &op->units[i];
    uint8_t *meta = unit->meta != NULL ? unit->meta : array->ones;
    uint8_t *system = unit->system != NULL ? unit->system : array->ones;

    emit_trailer(op, i, nand_unit_place(block, op->wordline, slot_unit),
                 array->blocks[block].number, meta, system);
    nand_op_vector(op, unit->data, NAND_UNIT_DATA);
    nand_op_vector(op, meta, NAND_UNIT_META);
    nand_op_vector(op, system, NAND_UNIT_SYSTEM);
    nand_op_vector(op, op->work.trailers[i], NAND_TRAILER_LEN);
}

/* Write the slot of one plane, which is the `rank`-th of `op->planes`. */
static void program_plane(struct nand_array *array, struct nand_op *op,
                          unsigned int plane, unsigned int rank)
{
    uint32_t block = nand_op_block(array, op, plane);
    unsigned int units = array->file.geometry.units, slot_unit = 0;
    unsigned int first = op->work.num_iov;
    struct iovec *iov;

    emit_wordline(array, op, plane, false);
    iov = nand_op_vector(op, op->work.headers[plane][false], NAND_WORDLINE_LEN);
    for (unsigned int page = 0; page < nand_array_pages(array, op->was_slc);
         page++) {
        for (unsigned int unit = 0; unit < units; unit++) {
            unsigned int i =
                (page * nand_op_count_planes(op) + rank) * units + unit;

            op->units[i].wordline = op->wordline;
            op->units[i].plane = (uint8_t)plane;
            op->units[i].page = (uint8_t)page;
            op->units[i].unit = (uint8_t)unit;
            add_unit(array, op, i, block, slot_unit++);
        }
    }
    emit_wordline(array, op, plane, true);
    if (op->finishes_at_once && (op->failed_planes & BIT(plane)) == 0) {
        nand_op_vector(op, op->work.headers[plane][true], NAND_WORDLINE_LEN);
    }
    nand_op_writev(array, op,
                   nand_layout_slot(&array->layout, block, op->wordline), iov,
                   op->work.num_iov - first);
}

static void start_program(struct nand_array *array, struct nand_op *op)
{
    unsigned int rank = 0;

    nand_op_enter(op, STAGE_PROGRAM);
    for (unsigned int plane = nand_op_plane(op, 0); plane < NAND_OP_PLANES;
         plane = nand_op_plane(op, plane + 1)) {
        program_plane(array, op, plane, rank++);
    }
}

/* The flags that an erasure leaves. */
static uint8_t erased_flags(const struct nand_op *op, unsigned int plane,
                            bool is_finished)
{
    unsigned int flags = op->is_slc ? NAND_BLOCK_SLC : 0;

    if (!is_finished) {
        flags |= NAND_BLOCK_HALF_ERASED;
    } else if ((op->failed_planes & BIT(plane)) != 0) {
        flags |= NAND_BLOCK_HALF_ERASED | NAND_BLOCK_FAILED;
    }
    return (uint8_t)flags;
}

/* The state of the block during and after its erasure. */
static struct nand_block erased_block(struct nand_array *array,
                                      const struct nand_op *op,
                                      unsigned int plane, bool is_finished)
{
    const struct nand_block *block = nand_op_state(array, op, plane);
    uint32_t wear = nand_erase_wear(array->file.profile, op->is_slc);

    return (struct nand_block){
        .number = block->number + 1,
        .wear = block->wear + MIN(wear, UINT32_MAX - block->wear),
        .flags = erased_flags(op, plane, is_finished),
    };
}

static void write_erased_records(struct nand_array *array, struct nand_op *op,
                                 enum nand_stage stage, bool is_finished)
{
    nand_op_enter(op, stage);
    for (unsigned int plane = nand_op_plane(op, 0); plane < NAND_OP_PLANES;
         plane = nand_op_plane(op, plane + 1)) {
        struct nand_block block = erased_block(array, op, plane, is_finished);
        uint32_t index = nand_op_block(array, op, plane);

        nand_array_emit_record(&block, index, op->work.time_ns,
                               op->work.records[plane]);
        nand_op_writev(
            array, op, nand_layout_record(index),
            nand_op_vector(op, op->work.records[plane], NAND_RECORD_LEN), 1);
    }
}

/*
 * Also of blocks that are empty: if power failed after an earlier erasure, its
 * discard may be missing, and the file still holds what the block held before.
 */
void nand_op_discard(struct nand_array *array, struct nand_op *op)
{
    const struct nand_backend *backend = &array->config.backend;

    nand_op_enter(op, STAGE_DISCARD);
    for (unsigned int plane = nand_op_plane(op, 0); plane < NAND_OP_PLANES;
         plane = nand_op_plane(op, plane + 1)) {
        backend->discard(backend->ctx, nand_op_new_request(array, op),
                         nand_layout_slot(&array->layout,
                                          nand_op_block(array, op, plane), 0),
                         array->layout.block_bytes);
    }
}

void nand_op_start_change(struct nand_array *array, struct nand_op *op)
{
    for (unsigned int plane = nand_op_plane(op, 0); plane < NAND_OP_PLANES;
         plane = nand_op_plane(op, plane + 1)) {
        if (plane_fails(array, op, plane)) {
            op->failed_planes |= (uint8_t)BIT(plane);
        }
    }
    op->verdict =
        op->failed_planes != 0 ? NAND_VERDICT_FAILED : NAND_VERDICT_OK;
    if (op->kind == NAND_OP_PROGRAM) {
        start_program(array, op);
    } else {
        write_erased_records(array, op, STAGE_ERASE, op->finishes_at_once);
    }
}

void nand_op_note_failure(struct nand_array *array, const struct nand_op *op)
{
    for (unsigned int plane = nand_op_plane(op, 0); plane < NAND_OP_PLANES;
         plane = nand_op_plane(op, plane + 1)) {
        struct nand_block *block = nand_op_state(array, op, plane);

        if (op->kind == NAND_OP_ERASE) {
            block->flags |= NAND_BLOCK_HALF_ERASED | NAND_BLOCK_DIRTY;
        }
    }
}

/* The change is complete: make it the state of the blocks. */
static void apply_change(struct nand_array *array, struct nand_op *op)
{
    for (unsigned int plane = nand_op_plane(op, 0); plane < NAND_OP_PLANES;
         plane = nand_op_plane(op, plane + 1)) {
        struct nand_block *block = nand_op_state(array, op, plane);

        if (op->kind == NAND_OP_PROGRAM) {
            nand_block_known(block, op->wordline + 1u,
                             (op->failed_planes & BIT(plane)) != 0);
        } else {
            *block = erased_block(array, op, plane, true);
            nand_block_known(block, 0, false);
        }
    }
}

void nand_op_end_change(struct nand_array *array, struct nand_op *op)
{
    if (op->storage_errno != 0) {
        nand_op_note_failure(array, op);
        op->verdict = NAND_VERDICT_STORAGE;
    } else {
        apply_change(array, op);
    }
    nand_op_set_busy(array, op, false);
}

/* Write the ends of the slots, which make the wordlines programmed. */
static void finish_program(struct nand_array *array, struct nand_op *op)
{
    uint32_t offset =
        nand_slot_unit((uint32_t)nand_array_pages(array, op->was_slc) *
                       array->file.geometry.units);

    nand_op_enter(op, STAGE_FINISH);
    for (unsigned int plane = nand_op_plane(op, 0); plane < NAND_OP_PLANES;
         plane = nand_op_plane(op, plane + 1)) {
        if ((op->failed_planes & BIT(plane)) == 0) {
            nand_op_writev(array, op,
                           nand_layout_slot(&array->layout,
                                            nand_op_block(array, op, plane),
                                            op->wordline) +
                               offset,
                           nand_op_vector(op, op->work.headers[plane][true],
                                          NAND_WORDLINE_LEN),
                           1);
        }
    }
}

bool nand_op_finish_change(struct nand_array *array, struct nand_op *op)
{
    if (op->kind == NAND_OP_ERASE) {
        write_erased_records(array, op, STAGE_FINISH, true);
    } else {
        finish_program(array, op);
    }
    return op->work.pending != 0;
}
