/* SPDX-License-Identifier: BSD-2-Clause */
/* The end of operations of the medium. */
#include "storage/ftl/io/ftl_op_parts.h"
#include "storage/ftl/map/ftl_trace_units.h"
#include "storage/ftl/ops/ops.h"

void ftl_op_end(struct ftl_io_floor *ftl, struct ftl_op *op)
{
    if (op->status != MEDIA_OK) {
        ftl->io.failed_block = op->failed_block;
        ftl_op_finish(ftl, op);
        return;
    }
    if (!op->needs_durable) {
        ftl_op_finish(ftl, op);
        return;
    }
    op->state = FTL_OP_DURABLE;
    op->barrier = ftl->accepted;
    ftl->forced = ftl->accepted;
    ftl_note_flush(&ftl->map_floor, op);
    ftl_hold_try_again(&ftl->hold);
    ftl_list_append(&ftl->io.barriers, ftl_op_index(&ftl->io, op));
}
