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
};

/** @return the beginning of an operation's pieces */
static inline struct ftl_cursor ftl_cursor_of(const struct media_io *io)
{
    return (struct ftl_cursor){.piece = io->pieces};
}

/** If a piece has ended, go on with the next one, which exists. */
static inline void ftl_cursor_pass_end(struct ftl_cursor *cursor)
{
    if (cursor->offset == cursor->piece->len_bytes) {
        cursor->piece++;
        cursor->offset = 0;
    }
}

/** @return the next bytes; *len becomes smaller if the piece ends before */
static inline uint8_t *ftl_cursor_take(struct ftl_cursor *cursor, uint32_t *len)
{
    uint8_t *at;

    ftl_cursor_pass_end(cursor);
    at = (uint8_t *)cursor->piece->ptr + cursor->offset;
    *len = MIN(*len, cursor->piece->len_bytes - cursor->offset);
    cursor->offset += *len;
    return at;
}

/** Whether a cursor has not left the pieces of an operation. */
static inline bool ftl_cursor_is_within(const struct ftl_cursor *cursor,
                                        const struct media_io *io)
{
    return cursor->piece < io->pieces + io->piece_count;
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

/** @return how many pieces hold the next `len` bytes, which are not none */
static inline uint32_t ftl_cursor_count(const struct ftl_cursor *cursor,
                                        uint32_t len)
{
    const struct nvmf_piece *piece = cursor->piece;
    uint32_t found = piece->len_bytes - cursor->offset;
    uint32_t count = found != 0;

    while (found < len) {
        piece++;
        found += piece->len_bytes;
        count++;
    }
    return count;
}

#endif
