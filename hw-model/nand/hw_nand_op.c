/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How the NAND controller uses an operation of the array for a command.
 * Reference: docs/hardware/nand.md, sections 4 and 5.
 */
#include "hw-model/nand/hw_nand_internal.h"

#include <string.h>

static const uint8_t kind_of[] = {
    [NAND_CMD_READ] = NAND_OP_READ,
    [NAND_CMD_PROGRAM] = NAND_OP_PROGRAM,
    [NAND_CMD_ERASE] = NAND_OP_ERASE,
};

static void fill_array_op(const struct hw_nand *nand,
                          const struct hw_nand_op *op, struct nand_op *array_op)
{
    array_op->kind = kind_of[op->opcode];
    array_op->channel = (uint8_t)(op->die / nand->geometry.dies);
    array_op->die = (uint8_t)(op->die % nand->geometry.dies);
    array_op->planes = op->planes;
    array_op->is_slc = op->is_slc;
    array_op->keeps_storage = op->is_reused;
    array_op->finishes_at_once = !hw_nand_is_timed(nand);
    array_op->wordline = op->wordline;
    array_op->num_units = op->entries;
    memcpy(array_op->block, op->block, sizeof(op->block));
}

bool hw_nand_op_open(struct hw_nand *nand, struct hw_nand_op *op)
{
    op->array_op = nand_op_get(nand->array);
    ASSERT(op->array_op != NULL); /* hw_nand_attach() asked for enough */
    op->status = (uint8_t)hw_nand_entries_map(nand, op, op->array_op);
    if (op->status != NAND_CQE_OK) {
        return false;
    }
    op->array_op->owner = op;
    fill_array_op(nand, op, op->array_op);
    return true;
}

static uint8_t status_of_verdict(const struct hw_nand_op *op)
{
    switch (op->array_op->verdict) {
    case NAND_VERDICT_OK:
        return NAND_CQE_OK;
    case NAND_VERDICT_BAD_PLACE:
        return NAND_CQE_BAD_ADDRESS;
    case NAND_VERDICT_BAD_ARGUMENT:
        return NAND_CQE_BAD_ARGUMENT;
    case NAND_VERDICT_RULE:
        return NAND_CQE_RULE;
    case NAND_VERDICT_DEAD:
        return NAND_CQE_DEAD;
    case NAND_VERDICT_FAILED:
        return NAND_CQE_FAILED;
    case NAND_VERDICT_TRANSFER:
        return NAND_CQE_TRANSFER;
    default:
        return NAND_CQE_STORAGE;
    }
}

static void report_violation(const struct hw_nand *nand,
                             const struct hw_nand_op *op)
{
    const struct nand_op *array_op = op->array_op;
    const struct hw_nand_violation violation = {
        .opcode = op->opcode,
        .rule = array_op->rule,
        .channel = array_op->channel,
        .die = array_op->die,
        .planes = op->planes,
        .block = op->block[__builtin_ctz(op->planes)],
        /* A read is refused as a whole: it is the first entry's. */
        .wordline = op->opcode == NAND_CMD_READ ? array_op->units[0].wordline
                                                : op->wordline,
    };

    if (nand->config.violated != NULL) {
        nand->config.violated(nand->config.ctx, &violation);
    }
}

/* Whether a program is of a block in which the latest program has failed.
 * Firmware may not have seen that failure when it submitted this one. */
static bool follows_failure(const struct hw_nand *nand,
                            const struct hw_nand_op *op)
{
    const struct hw_nand_die *die = &nand->dies[op->die];

    for (unsigned int i = 0; i < HW_NAND_PLANES; i++) {
        if ((die->failed_planes & op->planes & BIT(i)) != 0 &&
            die->failed_block[i] == op->block[i]) {
            return op->opcode == NAND_CMD_PROGRAM;
        }
    }
    return false;
}

void hw_nand_op_note_program(struct hw_nand *nand, const struct hw_nand_op *op)
{
    struct hw_nand_die *die = &nand->dies[op->die];

    if (!nand->config.queues_programs || op->opcode != NAND_CMD_PROGRAM) {
        return;
    }
    if (op->status != NAND_CQE_OK && op->status != NAND_CQE_RULE) {
        die->failed_planes = op->planes;
        memcpy(die->failed_block, op->block, sizeof(op->block));
    } else if (op->status == NAND_CQE_OK && follows_failure(nand, op)) {
        die->failed_planes = 0;
    }
}

void hw_nand_op_judge(struct hw_nand *nand, struct hw_nand_op *op)
{
    op->status = status_of_verdict(op);
    if (op->status == NAND_CQE_RULE && follows_failure(nand, op)) {
        op->status = NAND_CQE_ABORTED;
    }
    if (op->status == NAND_CQE_RULE) {
        op->detail = op->array_op->rule;
        hw_nand_count(nand, NAND_COUNT_VIOLATIONS, 1);
        report_violation(nand, op);
    }
}

uint64_t hw_nand_op_close(struct hw_nand *nand, struct hw_nand_op *op)
{
    uint64_t decode_ns = 0;

    if (op->opcode == NAND_CMD_READ && op->status == NAND_CQE_OK) {
        hw_nand_entries_end(nand, op);
        decode_ns = hw_nand_decode_ns(nand, op);
    }
    nand_op_put(nand->array, op->array_op);
    op->array_op = NULL;
    return decode_ns;
}
