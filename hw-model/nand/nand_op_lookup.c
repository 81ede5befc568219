/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The search for the next wordline of blocks that are used for the first time
 * since the array was opened: bisection over the beginnings of their slots.
 *
 * If the beginning of a slot is damaged, its valid end shows that the wordline
 * was programmed.  Otherwise the wordline would read as erased, and could be
 * programmed a second time.
 */
#include "hw-model/nand/nand_array_internal.h"

static void send_probe(struct nand_array *array, struct nand_op *op,
                       enum nand_probe probe, uint32_t wordline)
{
    unsigned int plane = op->work.plane;
    const struct nand_block *block = nand_op_state(array, op, plane);
    uint64_t offset = nand_layout_slot(
        &array->layout, nand_op_block(array, op, plane), wordline);

    if (probe == PROBE_GAP || probe == PROBE_END) {
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

/*
 * Whether the end of a slot is evidence that its wordline was begun.  In SLC
 * mode it is not, because the end is where the native mode has data of hosts.
 */
static bool end_is_evidence(struct nand_array *array, const struct nand_op *op)
{
    const struct nand_block *block = nand_op_state(array, op, op->work.plane);

    return (block->flags & NAND_BLOCK_SLC) == 0;
}

/*
 * Continue the search between the bounds, and beyond them if the beginning of a
 * slot may be damaged.
 *
 * @return true when the next wordline is known, because none was begun
 */
static bool probe_between(struct nand_array *array, struct nand_op *op)
{
    struct nand_op_work *work = &op->work;

    if (work->low < work->high) {
        send_probe(array, op, PROBE_MIDDLE, (work->low + work->high) / 2);
    } else if (work->probe != PROBE_GAP && end_is_evidence(array, op) &&
               work->low < array->file.geometry.wordlines) {
        send_probe(array, op, PROBE_GAP, work->low);
    } else if (work->low != 0) {
        send_probe(array, op, PROBE_END, work->low - 1);
    } else {
        nand_block_known(nand_op_state(array, op, work->plane), 0, false);
        return true;
    }
    return false;
}

static bool note_middle(struct nand_array *array, struct nand_op *op)
{
    struct nand_op_work *work = &op->work;
    uint32_t middle = (work->low + work->high) / 2;

    if (probe_found(array, op, middle, false)) {
        work->low = middle + 1;
    } else {
        work->high = middle;
    }
    return probe_between(array, op);
}

bool nand_op_probe_done(struct nand_array *array, struct nand_op *op)
{
    const uint32_t wordlines = array->file.geometry.wordlines;
    struct nand_op_work *work = &op->work;

    switch (work->probe) {
    case PROBE_FIRST:
        work->low = probe_found(array, op, 0, false) ? 1 : 0;
        work->high = work->low;
        if (work->low == 1 && wordlines > 1) {
            send_probe(array, op, PROBE_LAST, wordlines - 1);
            return false;
        }
        return probe_between(array, op);
    case PROBE_LAST:
        if (probe_found(array, op, wordlines - 1, false)) {
            work->low = wordlines;
        }
        work->high = MAX(work->low, wordlines - 1);
        return probe_between(array, op);
    case PROBE_MIDDLE:
        return note_middle(array, op);
    case PROBE_GAP:
        if (probe_found(array, op, work->low, true)) {
            work->low++;
            work->high = wordlines;
            work->probe = PROBE_MIDDLE; /* There may be another gap. */
        }
        return probe_between(array, op);
    default:
        nand_block_known(nand_op_state(array, op, work->plane), work->low,
                         !probe_found(array, op, work->low - 1, true));
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
