/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Whether an operation of a NAND array is allowed: its place, its entries, and
 * the rules of the flash.
 */
#include "hw-model/nand/nand_array_internal.h"

/* The rules of nand.md, section 1. */
enum {
    RULE_ORDER = 1,
    RULE_PLANES = 2,
    RULE_FACTORY_BAD = 3,
};

const char *nand_rule_text(uint8_t rule)
{
    switch (rule) {
    case RULE_ORDER:
        return "it is not the next wordline of an erased block";
    case RULE_PLANES:
        return "its blocks are not in the same mode";
    case RULE_FACTORY_BAD:
        return "the factory marked the block as bad";
    default:
        return "there is no such rule";
    }
}

/* Whether an entry of a read names a part of the array, in the right order. */
static enum nand_verdict check_entry(const struct nand_array *array,
                                     const struct nand_op *op, unsigned int i)
{
    const struct nand_geometry *geometry = &array->file.geometry;
    const struct nand_unit *unit = &op->units[i];
    unsigned int end = (unsigned int)unit->offset + unit->length;

    if (unit->plane >= NAND_OP_PLANES || (op->planes & BIT(unit->plane)) == 0 ||
        unit->wordline >= geometry->wordlines ||
        unit->page >= nand_array_pages(array, op->was_slc) ||
        unit->unit >= geometry->units) {
        return NAND_VERDICT_BAD_PLACE;
    }
    if (unit->data != NULL && (unit->length == 0 || end > NAND_UNIT_DATA)) {
        return NAND_VERDICT_BAD_ARGUMENT;
    }
    if (unit->more) {
        const struct nand_unit *next = unit + 1;

        if (i + 1 == op->num_units || unit->data == NULL ||
            next->data == NULL || next->offset < end ||
            next->plane != unit->plane || next->wordline != unit->wordline ||
            next->page != unit->page || next->unit != unit->unit) {
            return NAND_VERDICT_BAD_ARGUMENT;
        }
    }
    return NAND_VERDICT_OK;
}

static enum nand_verdict check_read(const struct nand_array *array,
                                    const struct nand_op *op)
{
    if (op->num_units == 0 || op->num_units > NAND_OP_UNITS) {
        return NAND_VERDICT_BAD_ARGUMENT;
    }
    for (unsigned int i = 0; i < op->num_units; i++) {
        enum nand_verdict verdict = check_entry(array, op, i);

        if (verdict != NAND_VERDICT_OK) {
            return verdict;
        }
    }
    return NAND_VERDICT_OK;
}

static enum nand_verdict check_program(const struct nand_array *array,
                                       const struct nand_op *op)
{
    const struct nand_geometry *geometry = &array->file.geometry;

    if (op->wordline >= geometry->wordlines) {
        return NAND_VERDICT_BAD_PLACE;
    }
    if (op->num_units != nand_op_count_planes(op) *
                             nand_array_pages(array, op->was_slc) *
                             geometry->units) {
        return NAND_VERDICT_BAD_ARGUMENT;
    }
    for (unsigned int i = 0; i < op->num_units; i++) {
        if (op->units[i].data == NULL) {
            return NAND_VERDICT_BAD_ARGUMENT;
        }
    }
    return NAND_VERDICT_OK;
}

static bool place_is_valid(const struct nand_array *array,
                           const struct nand_op *op)
{
    const struct nand_geometry *geometry = &array->file.geometry;

    if (op->channel >= geometry->channels || op->die >= geometry->dies ||
        op->planes == 0 || op->planes >= BIT(geometry->planes)) {
        return false;
    }
    for (unsigned int plane = nand_op_plane(op, 0); plane < NAND_OP_PLANES;
         plane = nand_op_plane(op, plane + 1)) {
        if (op->block[plane] >= geometry->blocks) {
            return false;
        }
    }
    return true;
}

enum nand_verdict nand_op_check(struct nand_array *array, struct nand_op *op)
{
    unsigned int slc_planes = 0;

    if (!place_is_valid(array, op)) {
        return NAND_VERDICT_BAD_PLACE;
    }
    for (unsigned int plane = nand_op_plane(op, 0); plane < NAND_OP_PLANES;
         plane = nand_op_plane(op, plane + 1)) {
        const struct nand_block *block = nand_op_state(array, op, plane);

        /* The owner has let two operations change a block at the same time. */
        ASSERT((block->flags & NAND_BLOCK_BUSY) == 0);
        slc_planes += (block->flags & NAND_BLOCK_SLC) != 0;
    }
    /* An erase may be of blocks in both modes.  It takes as long as the slower
     * ones, which are those in native mode. */
    op->was_slc = slc_planes == nand_op_count_planes(op);
    if (nand_array_die_is_dead(array, op->channel, op->die)) {
        return NAND_VERDICT_DEAD;
    }
    if (op->kind == NAND_OP_ERASE) {
        return op->is_slc && array->file.profile->slc.pages == 0
                   ? NAND_VERDICT_BAD_ARGUMENT
                   : NAND_VERDICT_OK;
    }
    if (slc_planes != 0 && !op->was_slc) {
        op->rule = RULE_PLANES;
        return NAND_VERDICT_RULE;
    }
    return op->kind == NAND_OP_READ ? check_read(array, op)
                                    : check_program(array, op);
}

uint8_t nand_op_broken_rule(struct nand_array *array, const struct nand_op *op)
{
    const unsigned int broken = NAND_BLOCK_HALF_ERASED | NAND_BLOCK_TORN;

    for (unsigned int plane = nand_op_plane(op, 0); plane < NAND_OP_PLANES;
         plane = nand_op_plane(op, plane + 1)) {
        const struct nand_block *block = nand_op_state(array, op, plane);

        if ((block->flags & NAND_BLOCK_FACTORY_BAD) != 0) {
            return RULE_FACTORY_BAD;
        }
        if (op->kind == NAND_OP_PROGRAM &&
            ((block->flags & broken) != 0 || block->next != op->wordline)) {
            return RULE_ORDER;
        }
    }
    return 0;
}
