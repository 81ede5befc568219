/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A position in the pieces of an operation of the medium.  Each operation goes
 * through its pieces from the first byte to the last one.
 */
#ifndef ESSD_FTL_PIECES_H
#define ESSD_FTL_PIECES_H

#include "lib/util.h"
#include "storage/block/media.h"

#include <string.h>

struct ftl_cursor {
    const struct nvmf_piece *piece;
    uint32_t offset; /* of the next byte in this piece */
    uint32_t pieces; /* this one and those after it */
};

/** @return the beginning of an operation's pieces */
static inline struct ftl_cursor ftl_cursor_of(const struct media_io *io)
{
    return (struct ftl_cursor){.piece = io->pieces, .pieces = io->piece_count};
}

/** @return the next bytes; *len becomes smaller if the piece ends before */
static inline uint8_t *ftl_cursor_take(struct ftl_cursor *cursor, uint32_t *len)
{
    uint8_t *at;

    ASSERT(cursor->pieces != 0);
    at = (uint8_t *)cursor->piece->ptr + cursor->offset;
    *len = MIN(*len, cursor->piece->len_bytes - cursor->offset);
    cursor->offset += *len;
    if (cursor->offset == cursor->piece->len_bytes) {
        cursor->piece++;
        cursor->pieces--;
        cursor->offset = 0;
    }
    return at;
}

/** Pass over the next `len` bytes. */
static inline void ftl_cursor_skip(struct ftl_cursor *cursor, uint32_t len)
{
    while (len != 0) {
        uint32_t now = len;

        (void)ftl_cursor_take(cursor, &now);
        len -= now;
    }
}

/** Set the next `len` bytes to `value`. */
static inline void ftl_cursor_fill(struct ftl_cursor *cursor, uint8_t value,
                                   uint32_t len)
{
    while (len != 0) {
        uint32_t now = len;
        uint8_t *at = ftl_cursor_take(cursor, &now);

        memset(at, value, now);
        len -= now;
    }
}

/** @return how many pieces hold the next `len` bytes, at least 1 */
static inline uint32_t ftl_cursor_count(const struct ftl_cursor *cursor,
                                        uint32_t len)
{
    uint32_t count = 1;
    uint32_t found = cursor->piece->len_bytes - cursor->offset;

    while (found < len) {
        found += cursor->piece[count].len_bytes;
        count++;
    }
    return count;
}

#endif
