/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Blocks with 8 bytes of metadata: data and metadata move between the pieces of
 * an operation and the data and metadata of a unit, and protection information
 * is checked and made.
 *
 * A unit has room for the metadata of its eight blocks of 512 bytes, or of its
 * single block of 4096 bytes.  All of a unit is programmed at once, so a power
 * cut never separates data from its metadata.
 *
 * A write operation is checked as a whole before it changes anything.  So an
 * operation whose check fails changes no block.
 *
 * The firmware computes the CRCs here.  The NAND controller does not check
 * protection information yet; what is here is all that would move there.
 */
#include "firmware/ftl/ftl_internal.h"

#include <string.h>

#include "lib/t10_pi.h"

/* A position in the pieces of an operation. */
struct cursor {
    const struct nvmf_piece *piece;
    uint32_t offset;
};

/* @return the next bytes; *len becomes smaller if the piece ends before */
static uint8_t *cursor_take(struct cursor *cursor, uint32_t *len)
{
    uint8_t *at;

    if (cursor->offset == cursor->piece->len_bytes) {
        cursor->piece++;
        cursor->offset = 0;
    }
    at = (uint8_t *)cursor->piece->ptr + cursor->offset;
    *len = MIN(*len, cursor->piece->len_bytes - cursor->offset);
    cursor->offset += *len;
    return at;
}

/* Copy `len` bytes from or to the pieces; `from` or `to` is NULL.  Both are
 * NULL: the bytes in the pieces become 0. */
static void cursor_copy(struct cursor *cursor, uint8_t *to, const uint8_t *from,
                        uint32_t len)
{
    while (len != 0) {
        uint32_t now = len;
        uint8_t *at = cursor_take(cursor, &now);

        if (to != NULL) {
            memcpy(to, at, now);
            to += now;
        } else if (from != NULL) {
            memcpy(at, from, now);
            from += now;
        } else {
            memset(at, 0, now);
        }
        len -= now;
    }
}

/* The CRC of the next `len` bytes. */
static uint16_t cursor_guard(struct cursor *cursor, uint32_t len)
{
    uint16_t guard = 0;

    while (len != 0) {
        uint32_t now = len;
        const uint8_t *at = cursor_take(cursor, &now);

        guard = t10_crc_update(guard, at, now);
        len -= now;
    }
    return guard;
}

/* ---- Blocks of an operation. */

static uint32_t block_bytes(const struct media_io *io)
{
    return io->protection & MEDIA_4096 ? 4096 : 512;
}

static unsigned int pi_type(const struct media_io *io)
{
    return io->protection & MEDIA_PI_TYPE;
}

static bool is_interleaved(const struct media_io *io)
{
    return io->protection & MEDIA_INTERLEAVED;
}

/* Where the metadata of a block is, whose data begins at `offset` of a unit. */
static uint32_t meta_offset(const struct media_io *io, uint32_t offset)
{
    return offset / block_bytes(io) * T10_PI_LEN;
}

static uint32_t expected_ref_tag(const struct media_io *io, uint32_t block)
{
    return io->ref_tag + (pi_type(io) == 3 ? 0 : block);
}

/*
 * Check a block.
 *
 * @param block  its number in the operation
 * @param guard  the CRC of its data, if that is to be checked
 */
static enum media_status check_block(const struct media_io *io, uint32_t block,
                                     uint16_t guard, const uint8_t *meta)
{
    struct t10_pi pi;

    t10_pi_parse(&pi, meta);
    if (t10_pi_is_escaped(&pi, pi_type(io))) {
        return MEDIA_OK;
    }
    if (io->protection & MEDIA_CHECK_GUARD && pi.guard != guard) {
        return MEDIA_GUARD_ERROR;
    }
    if (io->protection & MEDIA_CHECK_APP &&
        ((pi.app_tag ^ io->app_tag) & io->app_mask) != 0) {
        return MEDIA_APP_TAG_ERROR;
    }
    if (io->protection & MEDIA_CHECK_REF &&
        pi.ref_tag != expected_ref_tag(io, block)) {
        return MEDIA_REF_TAG_ERROR;
    }
    return MEDIA_OK;
}

/* The operation fails because of this block.  The first such block counts. */
static void note_failure(struct ftl_op *op, uint32_t block,
                         enum media_status status)
{
    bool is_first =
        op->status == MEDIA_OK ||
        (op->status >= MEDIA_GUARD_ERROR && block < op->failed_block);

    if (status != MEDIA_OK && is_first) {
        op->status = (uint8_t)status;
        op->failed_block = block;
    }
}

static struct cursor op_cursor(const struct ftl_op *op)
{
    return (struct cursor){&op->io.pieces[op->piece], op->piece_offset};
}

static void op_set_cursor(struct ftl_op *op, const struct cursor *cursor)
{
    op->piece = (uint8_t)(cursor->piece - op->io.pieces);
    op->piece_offset = cursor->offset;
    if (cursor->offset != 0 && cursor->offset == cursor->piece->len_bytes) {
        op->piece++;
        op->piece_offset = 0;
    }
}

/* The number of the block at which the rest of an operation begins. */
static uint32_t next_block(const struct ftl_op *op)
{
    uint64_t sectors = op->next_sector - op->io.first_lba;

    return (uint32_t)((sectors << FTL_SECTOR_SHIFT) / block_bytes(&op->io));
}

/* ---- Writes. */

bool ftl_protect_check_write(struct ftl_op *op)
{
    const struct media_io *io = &op->io;
    uint32_t bytes = block_bytes(io);
    uint32_t blocks =
        (uint32_t)(((uint64_t)io->count_blocks << FTL_SECTOR_SHIFT) / bytes);
    struct cursor cursor = op_cursor(op);
    uint8_t meta[T10_PI_LEN];

    if (io->op != MEDIA_WRITE || !is_interleaved(io) ||
        !(io->protection & MEDIA_CHECKS)) {
        return true;
    }
    for (uint32_t i = 0; i < blocks && op->status == MEDIA_OK; i++) {
        uint16_t guard = cursor_guard(&cursor, bytes);

        cursor_copy(&cursor, meta, NULL, sizeof(meta));
        note_failure(op, i, check_block(io, i, guard, meta));
    }
    return op->status == MEDIA_OK;
}

/* Make the metadata of a block that a host has written without any. */
static void make_metadata(const struct media_io *io, uint32_t block,
                          const uint8_t *data, uint8_t *meta)
{
    struct t10_pi pi = {
        .guard = t10_crc_update(0, data, block_bytes(io)),
        .app_tag = io->app_tag,
        .ref_tag = expected_ref_tag(io, block),
    };

    t10_pi_emit(&pi, meta);
}

void ftl_protect_write(struct ftl_op *op, uint8_t *data, uint8_t *meta,
                       uint32_t offset, uint32_t length)
{
    const struct media_io *io = &op->io;
    uint32_t bytes = block_bytes(io);
    uint32_t block = next_block(op);
    struct cursor cursor = op_cursor(op);

    for (uint32_t at = offset; at < offset + length; at += bytes, block++) {
        uint8_t *block_meta = meta + meta_offset(io, at);

        if (io->op == MEDIA_WRITE) {
            cursor_copy(&cursor, data + at, NULL, bytes);
        } else {
            memset(data + at, 0, bytes);
        }
        if (!is_interleaved(io)) {
            make_metadata(io, block, data + at, block_meta);
        } else if (io->op == MEDIA_WRITE) {
            cursor_copy(&cursor, block_meta, NULL, T10_PI_LEN);
        } else {
            memset(block_meta, 0, T10_PI_LEN);
        }
    }
    if (io->op == MEDIA_WRITE) {
        op_set_cursor(op, &cursor);
    }
}

/* ---- Reads. */

/* Put the metadata of a block into the pieces if the host wants it, and check
 * the block. */
static void finish_block(struct ftl_op *op, struct cursor *cursor,
                         uint32_t block, uint16_t guard, const uint8_t *meta)
{
    if (is_interleaved(&op->io)) {
        cursor_copy(cursor, NULL, meta, T10_PI_LEN);
    }
    if (op->io.protection & MEDIA_CHECKS) {
        note_failure(op, block, check_block(&op->io, block, guard, meta));
    }
}

void ftl_protect_read(struct ftl_op *op, const uint8_t *data,
                      const uint8_t *meta, uint32_t offset, uint32_t length)
{
    static const uint8_t escaped[T10_PI_LEN] = {0xff, 0xff, 0xff, 0xff,
                                                0xff, 0xff, 0xff, 0xff};
    const struct media_io *io = &op->io;
    uint32_t bytes = block_bytes(io);
    uint32_t block = next_block(op);
    struct cursor cursor = op_cursor(op);

    for (uint32_t at = offset; at < offset + length; at += bytes, block++) {
        uint16_t guard = 0;

        if (data == NULL) {
            cursor_copy(&cursor, NULL, NULL, bytes);
            finish_block(op, &cursor, block, 0, escaped);
            continue;
        }
        cursor_copy(&cursor, NULL, data + at, bytes);
        if (io->protection & MEDIA_CHECK_GUARD) {
            guard = t10_crc_update(0, data + at, bytes);
        }
        finish_block(op, &cursor, block, guard, meta + meta_offset(io, at));
    }
    op_set_cursor(op, &cursor);
}

/* Name the data of a block, in the pieces, as the next parts of a unit. */
static void add_block(struct ftl *ftl, struct ftl_request *request,
                      uint32_t place, struct cursor *cursor, uint32_t offset,
                      uint32_t length, bool is_last)
{
    uint32_t done = 0;

    while (done < length) {
        uint32_t len = length - done;
        struct ftl_flash_unit unit = {.data = cursor_take(cursor, &len)};

        unit.offset = (uint16_t)(offset + done);
        unit.length = (uint16_t)len;
        unit.meta = request->flash.num_units == 0 ? request->meta : NULL;
        unit.system = ftl_marks_read(ftl, request);
        done += len;
        unit.more = done < length || !is_last;
        ftl_request_add(ftl, request, place, &unit);
    }
}

void ftl_protect_read_flash(struct ftl *ftl, struct ftl_op *op,
                            struct ftl_request *request, uint32_t place,
                            uint32_t offset, uint32_t length)
{
    const struct media_io *io = &op->io;
    uint32_t bytes = block_bytes(io);
    uint32_t end = offset + length;
    struct cursor cursor = op_cursor(op);

    request->read = (struct ftl_protected_read){
        .piece = op->piece,
        .piece_offset = op->piece_offset,
        .block = next_block(op),
        .offset = (uint16_t)offset,
        .length = (uint16_t)length,
    };
    for (uint32_t at = offset; at < end; at += bytes) {
        uint32_t skip = is_interleaved(io) ? T10_PI_LEN : 0;

        add_block(ftl, request, place, &cursor, at, bytes, at + bytes == end);
        while (skip != 0) {
            uint32_t now = skip;

            (void)cursor_take(&cursor, &now);
            skip -= now;
        }
    }
    op_set_cursor(op, &cursor);
}

void ftl_protect_read_done(struct ftl_op *op, const struct ftl_request *request)
{
    const struct media_io *io = &op->io;
    const struct ftl_protected_read *read = &request->read;
    uint32_t bytes = block_bytes(io);
    uint32_t block = read->block;
    struct cursor cursor = {&io->pieces[read->piece], read->piece_offset};

    for (uint32_t at = read->offset; at < (uint32_t)read->offset + read->length;
         at += bytes, block++) {
        uint16_t guard = cursor_guard(&cursor, bytes);

        finish_block(op, &cursor, block, guard,
                     request->meta + meta_offset(io, at));
    }
}

/* ---- Trims. */

void ftl_protect_trim(uint8_t *meta, uint32_t offset, uint32_t length)
{
    memset(meta + (offset >> FTL_SECTOR_SHIFT) * T10_PI_LEN, 0xff,
           (size_t)(length >> FTL_SECTOR_SHIFT) * T10_PI_LEN);
}
