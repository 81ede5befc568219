/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads while operations take no time (timing=fast).  A read begins although
 * the storage has not yet delivered the units of earlier reads, since in the
 * model's time these have already ended.  So the storage gets many requests at
 * once.  The reads of a die complete in the order in which they began.  A
 * program or an erase waits until they have completed, because a read of a
 * block must not be in progress while the block changes.
 */
#include "hw-model/nand/hw_nand_internal.h"

/* Two reads in progress never store the read counter of the same block at the
 * same time: the counter is stored once in 4096 reads of units, and fewer units
 * are in progress. */
_Static_assert(HW_NAND_DIE_READS *NAND_OP_UNITS < 4096,
               "see NAND_READS_STORED");

bool hw_nand_reads_take(const struct hw_nand *nand,
                        const struct hw_nand_die *die,
                        const struct hw_nand_op *op)
{
    return op->opcode == NAND_CMD_READ && !nand->config.is_realtime &&
           (die->num_reads == 0 ||
            (die->num_reads < HW_NAND_DIE_READS &&
             nand->more_reads < HW_NAND_MORE_READS &&
             nand->more_entries + op->entries <= HW_NAND_MORE_ENTRIES));
}

/* Put a read into the list of its die, or take the first one out. */
static void enter_list(struct hw_nand *nand, struct hw_nand_die *die,
                       struct hw_nand_op *op)
{
    op->is_more = die->num_reads != 0;
    hw_nand_list_put(nand, &die->reads, op);
    die->num_reads++;
    if (op->is_more) {
        nand->more_reads++;
        nand->more_entries += op->entries;
    }
}

static void leave_list(struct hw_nand *nand, struct hw_nand_die *die,
                       const struct hw_nand_op *op)
{
    (void)hw_nand_list_take(nand, &die->reads);
    die->num_reads--;
    if (op->is_more) {
        nand->more_reads--;
        nand->more_entries -= op->entries;
    }
}

void hw_nand_reads_begin(struct hw_nand *nand, struct hw_nand_die *die,
                         struct hw_nand_op *op)
{
    enter_list(nand, die, op);
    op->is_started = false;
    op->is_served =
        !hw_nand_op_open(nand, op) ||
        nand_op_start(nand->array, op->array_op, hw_nand_now_ns(nand));
}

/* The array has started or finished the operation of the read.
 * @return whether the read has ended */
static bool advance_read(struct hw_nand *nand, struct hw_nand_op *op)
{
    if (op->status != NAND_CQE_OK) { /* The entries were refused. */
        return true;
    }
    hw_nand_op_judge(nand, op);
    if (op->status != NAND_CQE_OK || op->is_started) {
        return true;
    }
    op->is_started = true;
    op->is_served =
        nand_op_finish(nand->array, op->array_op, hw_nand_now_ns(nand));
    return op->is_served;
}

void hw_nand_reads_end(struct hw_nand *nand, struct hw_nand_die *die)
{
    struct hw_nand_op *op = hw_nand_list_first(nand, &die->reads);

    while (op != NULL && op->is_served && advance_read(nand, op)) {
        leave_list(nand, die, op);
        (void)hw_nand_op_close(nand, op);
        hw_nand_command_end(nand, op);
        op = hw_nand_list_first(nand, &die->reads);
    }
}
