/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The file of a NAND array from an untrusted source.  An input is a size and
 * pieces of a file: the rest of the file is zero.  An array that opens must be
 * usable: its blocks are read, programmed and erased, and what was programmed
 * must be read back.
 *
 * An input: the size in units of 4096 bytes (u16), then pieces: offset (u32),
 * length (u16), and that many bytes.
 */
#include "tests/fuzz/replay.h"

#include <stdlib.h>
#include <string.h>

#include "hw-model/nand/nand_array.h"
#include "hw-model/nand/nand_ram.h"
#include "lib/bytes.h"

enum {
    FILE_MAX = 4 << 20,
    MEMORY_MAX = 2 << 20,
    OPS = 1,
    SIZE_UNIT = 4096,
    PIECE_LEN = 6, /* before the bytes of a piece */
};

/* They are static because they are large. */
static uint8_t bytes[FILE_MAX];
static uint8_t memory[MEMORY_MAX] __attribute__((aligned(64)));
static struct nand_ram ram;
static struct nand_array *array;
static bool is_done;

static void abort_unless(bool is_true)
{
    if (!is_true) {
        abort();
    }
}

static void io_done(void *ctx, uint32_t id, int result)
{
    (void)ctx;
    nand_array_io_done(array, id, result);
}

static void op_done(void *ctx, struct nand_op *op)
{
    (void)ctx;
    (void)op;
    is_done = true;
}

static void sync_done(void *ctx, bool success)
{
    (void)ctx;
    abort_unless(success);
}

static void wait_for_done(bool done)
{
    is_done = done;
    while (!is_done) {
        abort_unless(nand_ram_step(&ram, 0));
    }
}

/* Do a whole operation. @return its verdict */
static enum nand_verdict run_op(struct nand_op *op)
{
    enum nand_verdict verdict;

    wait_for_done(nand_op_start(array, op, 0));
    if (op->verdict == NAND_VERDICT_OK || op->verdict == NAND_VERDICT_FAILED) {
        wait_for_done(nand_op_finish(array, op, 0));
    }
    verdict = op->verdict;
    abort_unless(verdict != NAND_VERDICT_BAD_PLACE &&
                 verdict != NAND_VERDICT_BAD_ARGUMENT &&
                 verdict != NAND_VERDICT_STORAGE);
    return verdict;
}

static struct nand_op *new_op(enum nand_op_kind kind, unsigned int plane,
                              unsigned int block)
{
    struct nand_op *op = nand_op_get(array);

    abort_unless(op != NULL);
    op->kind = (uint8_t)kind;
    op->planes = (uint8_t)BIT(plane);
    op->block[plane] = (uint16_t)block;
    op->finishes_at_once = (block & 1) != 0;
    return op;
}

/* Read a unit. @return its status, or ERASED when the die is dead */
static enum nand_unit_status read_unit(unsigned int plane, unsigned int block,
                                       unsigned int wordline, uint8_t *data)
{
    struct nand_op *op = new_op(NAND_OP_READ, plane, block);
    enum nand_unit_status status = NAND_UNIT_ERASED;

    op->num_units = 1;
    op->units[0] = (struct nand_unit){.data = data,
                                      .length = NAND_UNIT_DATA,
                                      .wordline = (uint16_t)wordline,
                                      .plane = (uint8_t)plane};
    if (run_op(op) == NAND_VERDICT_OK) {
        status = op->units[0].status;
    }
    nand_op_put(array, op);
    return status;
}

static void use_block(const struct nand_geometry *geometry, unsigned int plane,
                      unsigned int block)
{
    static uint8_t data[NAND_UNIT_DATA], back[NAND_UNIT_DATA];
    struct nand_op *op;
    enum nand_verdict verdict;

    for (unsigned int i = 0; i < geometry->wordlines && i < 4; i++) {
        (void)read_unit(plane, block, i, back);
    }
    op = new_op(NAND_OP_ERASE, plane, block);
    verdict = run_op(op);
    nand_op_put(array, op);
    if (verdict != NAND_VERDICT_OK) {
        return;
    }
    memset(data, (int)block + 1, sizeof(data));
    op = new_op(NAND_OP_PROGRAM, plane, block);
    op->num_units = (uint16_t)(geometry->pages * geometry->units);
    for (unsigned int i = 0; i < op->num_units; i++) {
        op->units[i] = (struct nand_unit){.data = data};
    }
    verdict = run_op(op);
    nand_op_put(array, op);
    if (verdict == NAND_VERDICT_OK &&
        read_unit(plane, block, 0, back) == NAND_UNIT_GOOD) {
        abort_unless(memcmp(data, back, sizeof(data)) == 0);
    }
}

static void use_array(const struct nand_file *file,
                      const struct nand_file_source *source)
{
    const struct nand_geometry *geometry = &file->geometry;
    struct nand_file_failure failure;

    if (nand_array_memory_bytes(geometry, OPS) > MEMORY_MAX) {
        return;
    }
    array = nand_array_open(
        &(struct nand_array_config){.backend = nand_ram_backend(&ram),
                                    .file = file,
                                    .num_ops = OPS,
                                    .memory = memory,
                                    .started = op_done,
                                    .finished = op_done,
                                    .synced = sync_done},
        source, &failure);
    if (array == NULL) {
        abort_unless(failure.reason == NAND_FILE_DAMAGED_BLOCK &&
                     failure.block < nand_geometry_blocks(geometry));
        return;
    }
    for (unsigned int i = 0; i < 8; i++) {
        use_block(geometry, i % geometry->planes,
                  i / geometry->planes % geometry->blocks);
    }
    abort_unless(!nand_array_sync(array, 0));
    while (nand_ram_step(&ram, 0)) {
    }
    abort_unless(nand_array_is_quiet(array));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct nand_file_source source;
    struct nand_file_failure failure;
    struct nand_file file;
    uint64_t size;

    if (len < 2) {
        return 0;
    }
    size = MIN((uint64_t)get_le16(data) * SIZE_UNIT, (uint64_t)FILE_MAX);
    memset(bytes, 0, sizeof(bytes));
    for (size_t at = 2; len - at >= PIECE_LEN;) {
        size_t offset = get_le32(data + at);
        size_t part = get_le16(data + at + 4);

        at += PIECE_LEN;
        part = MIN(part, len - at);
        if (offset < FILE_MAX) {
            memcpy(bytes + offset, data + at, MIN(part, FILE_MAX - offset));
        }
        at += part;
    }
    nand_ram_init(&ram, bytes, size);
    ram.done = io_done;
    source = nand_ram_source(&ram);
    if (nand_file_open(&file, &source, &failure)) {
        use_array(&file, &source);
    } else {
        abort_unless(failure.reason != NAND_FILE_OK && failure.text[0] != 0);
    }
    return 0;
}

static size_t add_piece(uint8_t *buf, size_t at, uint64_t offset,
                        const uint8_t *from, uint16_t len)
{
    put_le32(buf + at, (uint32_t)offset);
    put_le16(buf + at + 4, len);
    memcpy(buf + at + PIECE_LEN, from, len);
    return at + PIECE_LEN + len;
}

/* New arrays of each part, with two wordlines begun and one complete. */
size_t fuzz_seed(size_t n, uint8_t *buf, size_t room)
{
    struct nand_geometry geometry;
    struct nand_layout layout;
    struct nand_file file;
    const struct nand_profile *profile;
    uint8_t record[NAND_FILE_HEADER_LEN];
    size_t at = 2;

    if (n >= nand_profile_count()) {
        return 0;
    }
    profile = nand_profile((unsigned int)n);
    geometry = (struct nand_geometry){.channels = 1,
                                      .dies = 1,
                                      .planes = profile->planes,
                                      .units = profile->units,
                                      .pages = profile->native.pages,
                                      .blocks = 2,
                                      .wordlines = 3};
    nand_layout(&layout, &geometry);
    nand_file_new(&file, profile, &geometry, 1);
    abort_unless(layout.size_bytes <= FILE_MAX &&
                 nand_array_memory_bytes(&geometry, OPS) <= MEMORY_MAX &&
                 room > 4096);
    put_le16(buf, (uint16_t)((layout.size_bytes + SIZE_UNIT - 1) / SIZE_UNIT));
    nand_header_emit(&file, record);
    at = add_piece(buf, at, 0, record, NAND_FILE_HEADER_LEN);
    nand_state_emit(&file.state, record);
    at = add_piece(buf, at, nand_layout_state(1), record, NAND_STATE_LEN);
    for (uint32_t i = 0; i < nand_geometry_blocks(&geometry); i++) {
        struct nand_record block;

        nand_file_new_record(&file, i, &block);
        nand_record_emit(&block, i, record);
        at = add_piece(buf, at, nand_layout_record(i), record, NAND_RECORD_LEN);
    }
    for (uint16_t i = 0; i < 2; i++) {
        nand_wordline_emit(
            &(struct nand_wordline){.wordline = i, .pages = geometry.pages},
            false, record);
        at = add_piece(buf, at, nand_layout_slot(&layout, 0, i), record,
                       NAND_WORDLINE_LEN);
    }
    nand_wordline_emit(&(struct nand_wordline){.pages = geometry.pages}, true,
                       record);
    return add_piece(
        buf, at,
        nand_layout_slot(&layout, 0, 0) +
            nand_slot_unit((uint32_t)geometry.pages * geometry.units),
        record, NAND_WORDLINE_LEN);
}
