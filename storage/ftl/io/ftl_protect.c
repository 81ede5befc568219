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
 * All blocks of a write are checked before the write changes anything.  So a
 * write whose check fails changes no block.
 *
 * The NAND controller does these copies and checks, and makes protection
 * information.  The code here names the memory of each block in the list of
 * moves, and says what is checked.  No hart reads the data or metadata of a
 * host.
 */
#include "storage/ftl/io/io.h"
#include "storage/ftl/map/ftl_memory.h"
#include "storage/ftl/map/map.h"
#include "storage/ftl/ops/ops.h"

#include <string.h>

enum { PI_LEN = 8 };

/* ---- Blocks of an operation. */

static uint32_t block_bytes(const struct media_io *io)
{
    return io->protection & MEDIA_4096 ? 4096 : 512;
}

static bool is_interleaved(const struct media_io *io)
{
    return io->protection & MEDIA_INTERLEAVED;
}

static bool checks_guard(const struct media_io *io)
{
    return io->protection & MEDIA_CHECK_GUARD;
}

/* The offset of a block's metadata in that of the unit; the block's data begins
 * at `offset` of the unit's data. */
static uint32_t meta_offset(const struct media_io *io, uint32_t offset)
{
    return offset / block_bytes(io) * PI_LEN;
}

/* The operation fails because of this block.  The first such block counts. */
static void note_failure(struct ftl_op *op, uint32_t block,
                         enum media_status status)
{
    bool is_first =
        op->status == MEDIA_OK ||
        (op->status >= MEDIA_GUARD_ERROR && block < op->failed_block);

    if (is_first) {
        op->status = (uint8_t)status;
        op->failed_block = block;
    }
}

void ftl_protect_note_failed(struct ftl_io_floor *ftl,
                             const struct ftl_move *move, enum ftl_check check)
{
    static const uint8_t status_of[] = {
        [FTL_CHECK_GUARD] = MEDIA_GUARD_ERROR,
        [FTL_CHECK_APP_TAG] = MEDIA_APP_TAG_ERROR,
        [FTL_CHECK_REF_TAG] = MEDIA_REF_TAG_ERROR,
    };

    note_failure(&ftl->io.ops[move->op], move->block,
                 (enum media_status)status_of[check]);
}

/* The number of the block at which the rest of an operation begins. */
static uint32_t next_block(const struct ftl_op *op)
{
    uint64_t sectors = op->next_sector - op->io.first_lba;

    return (uint32_t)((sectors << FTL_SECTOR_SHIFT) / block_bytes(&op->io));
}

/* ---- Moves of a block. */

/* Add the data of a block, in the pieces, to its guard. */
static void add_pieces(struct ftl_io_floor *ftl, const struct ftl_op *op,
                       struct ftl_cursor *cursor)
{
    uint32_t left = block_bytes(&op->io);

    while (left != 0) {
        uint32_t now = left;
        const uint8_t *at = ftl_cursor_take(cursor, &now);

        ftl_memory_add_guard(&ftl->map_floor, op, NULL, at, now);
        left -= now;
    }
}

/* Copy `len` bytes between a unit and the pieces. */
static void move_bytes(struct ftl_io_floor *ftl, const struct ftl_op *op,
                       struct ftl_cursor *cursor, uint8_t *unit, uint32_t len,
                       bool adds_guard)
{
    while (len != 0) {
        uint32_t now = len;
        uint8_t *piece = ftl_cursor_take(cursor, &now);
        uint8_t *to = op->io.op == MEDIA_READ ? piece : unit;
        const uint8_t *from = op->io.op == MEDIA_READ ? unit : piece;

        if (adds_guard) {
            ftl_memory_add_guard(&ftl->map_floor, op, to, from, now);
        } else {
            ftl_memory_move(&ftl->map_floor, FTL_MOVE_COPY, to, from, now);
        }
        unit += now;
        len -= now;
    }
}

/* ---- Writes. */

/* Have the controller check all blocks of a write. */
static void check_blocks(struct ftl_io_floor *ftl, const struct ftl_op *op)
{
    const struct media_io *io = &op->io;
    uint32_t bytes = block_bytes(io);
    uint32_t blocks =
        (uint32_t)(((uint64_t)io->count_blocks << FTL_SECTOR_SHIFT) / bytes);
    struct ftl_cursor cursor = op->next;

    for (uint32_t i = 0; i < blocks; i++) {
        uint32_t len = PI_LEN;

        if (checks_guard(io)) {
            add_pieces(ftl, op, &cursor);
        } else {
            ftl_cursor_skip(&cursor, bytes);
        }
        ftl_memory_protect(&ftl->map_floor, op, i, NULL,
                           ftl_cursor_take(&cursor, &len));
        ASSERT(len == PI_LEN);
    }
    ftl_memory_run(&ftl->map_floor);
}

bool ftl_protect_check_write(struct ftl_io_floor *ftl, struct ftl_op *op)
{
    const struct media_io *io = &op->io;

    if (io->op == MEDIA_WRITE && is_interleaved(io) &&
        (io->protection & MEDIA_CHECKS)) {
        check_blocks(ftl, op);
    }
    return op->status == MEDIA_OK;
}

/* Write zeroes to a block.  The hart writes them, and reads nothing. */
static void write_zeroes(struct ftl_io_floor *ftl, const struct ftl_op *op,
                         uint32_t block, uint8_t *data, uint8_t *meta)
{
    memset(data, 0, block_bytes(&op->io));
    if (is_interleaved(&op->io)) {
        memset(meta, 0, PI_LEN);
    } else {
        ftl_memory_add_guard(&ftl->map_floor, op, NULL, data,
                             block_bytes(&op->io));
        ftl_memory_protect(&ftl->map_floor, op, block, meta, NULL);
    }
}

void ftl_protect_write(struct ftl_io_floor *ftl, struct ftl_op *op,
                       uint8_t *data, uint8_t *meta, uint32_t offset,
                       uint32_t length)
{
    const struct media_io *io = &op->io;
    uint32_t bytes = block_bytes(io);
    uint32_t block = next_block(op);
    bool makes = !is_interleaved(io);
    struct ftl_cursor cursor = op->next;

    if (io->op != MEDIA_WRITE) {
        /* Pending moves come before the writes of the hart below. */
        ftl_memory_run(&ftl->map_floor);
    }
    for (uint32_t at = offset; at < offset + length; at += bytes, block++) {
        uint8_t *block_meta = meta + meta_offset(io, at);

        if (io->op != MEDIA_WRITE) {
            write_zeroes(ftl, op, block, data + at, block_meta);
            continue;
        }
        move_bytes(ftl, op, &cursor, data + at, bytes, makes);
        if (makes) {
            ftl_memory_protect(&ftl->map_floor, op, block, block_meta, NULL);
        } else {
            move_bytes(ftl, op, &cursor, block_meta, PI_LEN, false);
        }
    }
    if (io->op == MEDIA_WRITE) {
        op->next = cursor;
    }
}

/* ---- Reads. */

/* Have the controller check the metadata of a block, and put it into the pieces
 * if the host wants it. */
static void finish_block(struct ftl_io_floor *ftl, const struct ftl_op *op,
                         struct ftl_cursor *cursor, uint32_t block,
                         const uint8_t *meta)
{
    uint32_t len = PI_LEN;
    uint8_t *to =
        is_interleaved(&op->io) ? ftl_cursor_take(cursor, &len) : NULL;

    ASSERT(len == PI_LEN);
    if (op->io.protection & MEDIA_CHECKS) {
        ftl_memory_protect(&ftl->map_floor, op, block, to, meta);
    } else if (to != NULL) {
        ftl_memory_move(&ftl->map_floor, FTL_MOVE_COPY, to, meta, PI_LEN);
    }
}

/* Trimmed blocks have zeroes and metadata that says that it is not checked. */
static void read_trimmed(struct ftl_op *op, uint32_t length)
{
    struct ftl_cursor cursor = op->next;

    for (uint32_t at = 0; at < length; at += block_bytes(&op->io)) {
        ftl_cursor_fill(&cursor, 0, block_bytes(&op->io));
        if (is_interleaved(&op->io)) {
            ftl_cursor_fill(&cursor, 0xff, PI_LEN);
        }
    }
    op->next = cursor;
}

void ftl_protect_read(struct ftl_io_floor *ftl, struct ftl_op *op,
                      const uint8_t *data, const uint8_t *meta, uint32_t offset,
                      uint32_t length)
{
    const struct media_io *io = &op->io;
    uint32_t bytes = block_bytes(io);
    uint32_t block = next_block(op);
    struct ftl_cursor cursor = op->next;

    if (data == NULL) {
        read_trimmed(op, length);
        return;
    }
    for (uint32_t at = offset; at < offset + length; at += bytes, block++) {
        move_bytes(ftl, op, &cursor, (uint8_t *)(uintptr_t)(data + at), bytes,
                   checks_guard(io));
        finish_block(ftl, op, &cursor, block, meta + meta_offset(io, at));
    }
    op->next = cursor;
    ftl_memory_run(&ftl->map_floor);
}

/* Name the data of a block, in the pieces, as the next parts of a unit. */
static void add_block(struct ftl_io_floor *ftl, struct ftl_request *request,
                      uint32_t place, struct ftl_cursor *cursor,
                      uint32_t offset, uint32_t length, bool is_last)
{
    uint32_t done = 0;

    while (done < length) {
        uint32_t len = length - done;
        struct ftl_flash_unit unit = {.data = ftl_cursor_take(cursor, &len)};

        unit.offset = (uint16_t)(offset + done);
        unit.length = (uint16_t)len;
        unit.meta = request->flash.num_units == 0 ? request->meta : NULL;
        unit.system = ftl_marks_read(&ftl->map_floor, request);
        done += len;
        unit.more = done < length || !is_last;
        ftl_request_add(&ftl->layout, request, place, &unit);
    }
}

void ftl_protect_read_flash(struct ftl_io_floor *ftl, struct ftl_op *op,
                            struct ftl_request *request, uint32_t place,
                            uint32_t offset, uint32_t length)
{
    const struct media_io *io = &op->io;
    uint32_t bytes = block_bytes(io);
    uint32_t end = offset + length;
    struct ftl_cursor cursor = op->next;

    request->read = (struct ftl_protected_read){
        .to = op->next,
        .block = next_block(op),
        .offset = (uint16_t)offset,
        .length = (uint16_t)length,
    };
    for (uint32_t at = offset; at < end; at += bytes) {
        add_block(ftl, request, place, &cursor, at, bytes, at + bytes == end);
        ftl_cursor_skip(&cursor, is_interleaved(io) ? PI_LEN : 0);
    }
    op->next = cursor;
}

void ftl_protect_read_done(struct ftl_io_floor *ftl, struct ftl_op *op,
                           const struct ftl_request *request)
{
    const struct media_io *io = &op->io;
    const struct ftl_protected_read *read = &request->read;
    uint32_t bytes = block_bytes(io);
    uint32_t block = read->block;
    struct ftl_cursor cursor = read->to;

    for (uint32_t at = read->offset; at < (uint32_t)read->offset + read->length;
         at += bytes, block++) {
        if (checks_guard(io)) {
            add_pieces(ftl, op, &cursor);
        } else {
            ftl_cursor_skip(&cursor, bytes);
        }
        finish_block(ftl, op, &cursor, block,
                     request->meta + meta_offset(io, at));
    }
    ftl_memory_run(&ftl->map_floor);
}

/* ---- Trims. */

void ftl_protect_trim(uint8_t *meta, uint32_t offset, uint32_t length)
{
    memset(meta + (offset >> FTL_SECTOR_SHIFT) * PI_LEN, 0xff,
           (size_t)(length >> FTL_SECTOR_SHIFT) * PI_LEN);
}
