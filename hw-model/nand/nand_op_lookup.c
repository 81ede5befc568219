/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The search for the next wordline of blocks that are used for the first time
 * since the array was opened: bisection over the beginnings of their slots.
 */
#include "hw-model/nand/nand_array_internal.h"

static void send_probe(struct nand_array *array, struct nand_op *op,
                       enum nand_probe probe, uint32_t wordline)
{
    unsigned int plane = op->work.plane;
    const struct nand_block *block = nand_op_state(array, op, plane);
    uint64_t offset = nand_layout_slot(
        &array->layout, nand_op_block(array, op, plane), wordline);

    if (probe == PROBE_END) {
        bool is_slc = (block->flags & NAND_BLOCK_SLC) != 0;

        offset += nand_slot_unit((uint32_t)nand_array_pages(array, is_slc) *
                                 array->file.geometry.units);
    }
    nand_op_enter(op, STAGE_LOOKUP);
    op->work.probe = (uint8_t)probe;
    nand_op_readv(array, op, offset,
                  nand_op_vector(op, op->work.headers[0][0], NAND_WORDLINE_LEN),
                  1);
}

/* Whether the probe has found that this wordline belongs to the block's state.
 */
static bool probe_found(struct nand_array *array, const struct nand_op *op,
                        uint32_t wordline, bool is_end)
{
    uint32_t index = nand_op_block(array, op, op->work.plane);
    const struct nand_block *block = &array->blocks[index];
    bool is_slc = (block->flags & NAND_BLOCK_SLC) != 0;
    struct nand_wordline found;

    return nand_wordline_parse(&found, is_end, op->work.headers[0][0]) &&
           found.block == index && found.number == block->number &&
           found.wordline == wordline &&
           found.pages == nand_array_pages(array, is_slc);
}

/* Probe between the bounds, or the end of the last wordline that was begun. */
static void probe_between(struct nand_array *array, struct nand_op *op)
{
    struct nand_op_work *work = &op->work;

    if (work->high - work->low > 1) {
        send_probe(array, op, PROBE_MIDDLE, (work->low + work->high) / 2u);
    } else {
        send_probe(array, op, PROBE_END, work->low);
    }
}

bool nand_op_probe_done(struct nand_array *array, struct nand_op *op)
{
    uint16_t last = (uint16_t)(array->file.geometry.wordlines - 1);
    struct nand_block *block = nand_op_state(array, op, op->work.plane);
    struct nand_op_work *work = &op->work;
    uint16_t middle;

    switch (work->probe) {
    case PROBE_FIRST:
        if (!probe_found(array, op, 0, false)) {
            nand_block_known(block, 0, false);
            return true;
        }
        work->low = 0;
        work->high = last;
        if (last == 0) {
            probe_between(array, op);
        } else {
            send_probe(array, op, PROBE_LAST, last);
        }
        return false;
    case PROBE_LAST:
        if (probe_found(array, op, last, false)) {
            work->low = last;
        }
        probe_between(array, op);
        return false;
    case PROBE_MIDDLE:
        middle = (uint16_t)((work->low + work->high) / 2);
        if (probe_found(array, op, middle, false)) {
            work->low = middle;
        } else {
            work->high = middle;
        }
        probe_between(array, op);
        return false;
    default:
        nand_block_known(block, work->low + 1u,
                         !probe_found(array, op, work->low, true));
        return true;
    }
}

bool nand_op_look_up(struct nand_array *array, struct nand_op *op)
{
    const unsigned int useless =
        NAND_BLOCK_KNOWN | NAND_BLOCK_FACTORY_BAD | NAND_BLOCK_HALF_ERASED;

    if (op->kind == NAND_OP_ERASE) {
        return true;
    }
    for (unsigned int plane = nand_op_plane(op, 0); plane < NAND_OP_PLANES;
         plane = nand_op_plane(op, plane + 1)) {
        if ((nand_op_state(array, op, plane)->flags & useless) == 0) {
            op->work.plane = (uint8_t)plane;
            send_probe(array, op, PROBE_FIRST, 0);
            return false;
        }
    }
    return true;
}
