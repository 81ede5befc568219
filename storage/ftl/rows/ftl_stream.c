/* SPDX-License-Identifier: BSD-2-Clause */
/* The end of a stream's superblock. */
#include "storage/ftl/rows/rows.h"
#include "storage/ftl/space/space.h"

void ftl_stream_close(struct ftl_rows_floor *ftl, uint32_t stream)
{
    struct ftl_stream *open = &ftl->streams[stream];

    ftl_parity_close(ftl, open);
    ftl->superblocks[open->superblock].last_row = ftl->next_row_number;
    ftl->superblocks[open->superblock].used_us = ftl->now_us;
    ftl_superblock_enter(&ftl->space_floor, open->superblock,
                         FTL_SUPERBLOCK_CLOSED);
    open->superblock = FTL_NOWHERE;
}

bool ftl_stream_close_ended(struct ftl_rows_floor *ftl)
{
    bool any = false;

    for (uint32_t i = 0; i < ftl->num_streams; i++) {
        const struct ftl_stream *stream = &ftl->streams[i];

        if (stream->superblock != FTL_NOWHERE && stream->is_ending &&
            stream->next_row == ftl->layout.superblock_rows) {
            ftl_stream_close(ftl, i);
            any = true;
        }
    }
    return any;
}
