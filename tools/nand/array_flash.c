/* SPDX-License-Identifier: BSD-2-Clause */
/* The file of an array as the flash of a translation layer: array_flash.h. */
#include "array_flash.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/bytes.h"

_Static_assert((int)FTL_OP_UNITS == (int)NAND_OP_UNITS &&
                   (int)FTL_PLANES_MAX == (int)NAND_OP_PLANES,
               "an operation of one is an operation of the other");

/* ---- Storage.  A request has ended when its function returns; the array is
 * told afterwards. */

static void end_request(struct array_flash *flash, uint32_t id, bool success)
{
    int result = success ? 0 : -(errno != 0 ? errno : EIO);

    ASSERT(flash->ended_tail - flash->ended_head < ARRAY_FLASH_ENDED);
    if (!success && flash->storage_errno == 0) {
        flash->storage_errno = -result;
    }
    flash->ended[flash->ended_tail++ % ARRAY_FLASH_ENDED] =
        (struct array_flash_ended){.id = id, .result = result};
}

static size_t sum_of(const struct iovec *iov, unsigned int niov)
{
    size_t sum = 0;

    for (unsigned int i = 0; i < niov; i++) {
        sum += iov[i].iov_len;
    }
    return sum;
}

static void read_storage(void *ctx, uint32_t id, uint64_t offset,
                         const struct iovec *iov, unsigned int niov)
{
    struct array_flash *flash = ctx;
    ssize_t all = (ssize_t)sum_of(iov, niov);
    bool success = true;

    errno = 0;
    if (flash->image->bytes != NULL ||
        preadv(flash->image->fd, iov, (int)niov, (off_t)offset) != all) {
        for (unsigned int i = 0; success && i < niov; i++) {
            success = image_read(flash->image, offset, iov[i].iov_base,
                                 iov[i].iov_len);
            offset += iov[i].iov_len;
        }
    }
    end_request(flash, id, success);
}

/* The block at an offset of the file, or num_blocks. */
static uint32_t block_at(const struct array_flash *flash, uint64_t offset)
{
    const struct nand_layout *layout = &flash->image->layout;

    return offset < layout->slots
               ? flash->image->num_blocks
               : (uint32_t)((offset - layout->slots) / layout->block_bytes);
}

static void write_storage(void *ctx, uint32_t id, uint64_t offset,
                          const struct iovec *iov, unsigned int niov)
{
    struct array_flash *flash = ctx;
    ssize_t all = (ssize_t)sum_of(iov, niov);
    bool success = true;

    flash->is_discarded[block_at(flash, offset)] = false;
    errno = 0;
    if (flash->image->bytes != NULL ||
        pwritev(flash->image->fd, iov, (int)niov, (off_t)offset) != all) {
        for (unsigned int i = 0; success && i < niov; i++) {
            success = image_write(flash->image, offset, iov[i].iov_base,
                                  iov[i].iov_len);
            offset += iov[i].iov_len;
        }
    }
    end_request(flash, id, success);
}

/* Most blocks are soon programmed again.  So the space of erased blocks is
 * given back only at the end, and only for those that are still erased. */
static void discard_storage(void *ctx, uint32_t id, uint64_t offset,
                            uint64_t len)
{
    struct array_flash *flash = ctx;

    (void)len;
    flash->is_discarded[block_at(flash, offset)] = true;
    end_request(flash, id, true);
}

/* A file system without holes keeps the old bytes.  This does no harm. */
static void give_back_space(struct array_flash *flash)
{
    const struct nand_layout *layout = &flash->image->layout;

    for (uint32_t i = 0; i < flash->image->num_blocks; i++) {
        if (flash->is_discarded[i] && flash->image->bytes == NULL) {
            (void)fallocate(flash->image->fd,
                            FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                            (off_t)nand_layout_slot(layout, i, 0),
                            (off_t)layout->block_bytes);
            flash->is_discarded[i] = false;
        }
    }
}

static void flush_storage(void *ctx, uint32_t id)
{
    struct array_flash *flash = ctx;

    errno = 0;
    end_request(flash, id,
                flash->image->bytes != NULL ||
                    fdatasync(flash->image->fd) == 0);
}

static void end_requests(struct array_flash *flash)
{
    while (flash->ended_head != flash->ended_tail) {
        struct array_flash_ended ended =
            flash->ended[flash->ended_head++ % ARRAY_FLASH_ENDED];

        nand_array_io_done(flash->array, ended.id, ended.result);
    }
}

/* ---- Operations, one at a time. */

static void ignore_op(void *ctx, struct nand_op *op)
{
    (void)ctx;
    (void)op;
}

static void note_sync(void *ctx, bool success)
{
    ((struct array_flash *)ctx)->is_synced = success;
}

static const uint8_t kind_of[] = {
    [FTL_FLASH_READ] = NAND_OP_READ,
    [FTL_FLASH_PROGRAM] = NAND_OP_PROGRAM,
    [FTL_FLASH_ERASE] = NAND_OP_ERASE,
};

static void fill_unit(struct nand_unit *to, const struct ftl_flash_op *op,
                      const struct ftl_flash_unit *from)
{
    *to = (struct nand_unit){
        .data = from->data,
        .meta = from->meta,
        .system = from->system,
        .offset = from->offset,
        .length = from->length,
        .wordline = op->wordline,
        .plane = from->plane,
        .page = from->page,
        .unit = from->unit,
        .more = from->more,
    };
}

static void fill_op(const struct array_flash *flash, struct nand_op *to,
                    const struct ftl_flash_op *op)
{
    unsigned int dies = flash->image->file.geometry.dies;

    to->kind = kind_of[op->kind];
    to->channel = (uint8_t)(op->die / dies);
    to->die = (uint8_t)(op->die % dies);
    to->planes = op->planes;
    to->finishes_at_once = true;
    to->wordline = op->wordline;
    to->num_units = op->num_units;
    for (unsigned int i = 0; i < NAND_OP_PLANES; i++) {
        to->block[i] = op->block;
    }
    for (unsigned int i = 0; i < op->num_units; i++) {
        fill_unit(&to->units[i], op, &op->units[i]);
    }
}

static void take_results(const struct ftl_flash_op *op,
                         const struct nand_op *from)
{
    static const uint8_t status_of[] = {
        [NAND_UNIT_GOOD] = FTL_UNIT_GOOD,
        [NAND_UNIT_ERASED] = FTL_UNIT_ERASED,
        [NAND_UNIT_UNCORRECTABLE] = FTL_UNIT_UNCORRECTABLE,
    };

    for (unsigned int i = 0; i < op->num_units; i++) {
        op->units[i].status = status_of[from->units[i].status];
        op->units[i].steps = from->units[i].steps;
        op->units[i].wrong_bits = from->units[i].bits;
    }
}

static enum ftl_flash_status status_of_verdict(const struct nand_op *op)
{
    switch (op->verdict) {
    case NAND_VERDICT_OK:
        return FTL_FLASH_OK;
    case NAND_VERDICT_FAILED:
        return FTL_FLASH_FAILED;
    case NAND_VERDICT_DEAD:
        return FTL_FLASH_DEAD;
    default:
        return FTL_FLASH_ERROR;
    }
}

static void report_broken_rule(struct array_flash *flash,
                               const struct nand_op *op)
{
    static const char *const name_of[] = {
        [NAND_OP_READ] = "read",
        [NAND_OP_PROGRAM] = "program",
        [NAND_OP_ERASE] = "erasure",
    };

    flash->rule_broken = true;
    image_complain(flash->image->path,
                   "bug in the translation layer: the flash refused a %s of "
                   "channel %u, die %u, block %u, wordline %u: %s (rule %u); "
                   "please report this",
                   name_of[op->kind], op->channel, op->die,
                   op->block[__builtin_ctz(op->planes)], op->wordline,
                   nand_rule_text(op->rule), op->rule);
}

static void execute_op(struct array_flash *flash,
                       const struct ftl_flash_op *flash_op)
{
    struct nand_op *op = nand_op_get(flash->array);
    enum ftl_flash_status status;
    uint8_t failed_planes;

    ASSERT(op != NULL);
    fill_op(flash, op, flash_op);
    if (!nand_op_start(flash->array, op, 0)) {
        end_requests(flash);
    }
    if (op->verdict == NAND_VERDICT_OK || op->verdict == NAND_VERDICT_FAILED) {
        if (!nand_op_finish(flash->array, op, 0)) {
            end_requests(flash);
        }
    }
    if (op->verdict == NAND_VERDICT_RULE) {
        report_broken_rule(flash, op);
    }
    status = status_of_verdict(op);
    failed_planes = op->failed_planes;
    if (flash_op->kind == FTL_FLASH_READ && status == FTL_FLASH_OK) {
        take_results(flash_op, op);
    }
    nand_op_put(flash->array, op);
    ftl_flash_done(flash->ftl, flash_op->cookie, status, failed_planes);
}

bool array_flash_submit(void *ctx, const struct ftl_flash_op *op)
{
    struct array_flash *flash = ctx;

    if (flash->tail - flash->head == ARRAY_FLASH_QUEUE) {
        return false;
    }
    flash->queue[flash->tail++ % ARRAY_FLASH_QUEUE] = *op;
    return true;
}

static void xor_words(uint8_t *to, const uint8_t *from, uint32_t len)
{
    for (uint32_t at = 0; at < len; at += 8) {
        put_le64(to + at, get_le64(to + at) ^ get_le64(from + at));
    }
}

void array_flash_move(void *ctx)
{
    struct ftl_moves *moves = &((struct array_flash *)ctx)->moves;

    for (uint32_t i = 0; i < moves->count; i++) {
        const struct ftl_move *move = &moves->list[i];
        const uint8_t *from = (const uint8_t *)(uintptr_t)move->source;
        uint8_t *to = (uint8_t *)(uintptr_t)move->target;

        ASSERT(move->kind == FTL_MOVE_COPY || move->kind == FTL_MOVE_XOR);
        if (move->kind == FTL_MOVE_COPY) {
            memmove(to, from, move->length);
        } else {
            xor_words(to, from, move->length);
        }
    }
    moves->count = 0;
}

bool array_flash_run(struct array_flash *flash)
{
    bool any = flash->head != flash->tail;

    while (flash->head != flash->tail) {
        struct ftl_flash_op op =
            flash->queue[flash->head++ % ARRAY_FLASH_QUEUE];

        execute_op(flash, &op);
    }
    return any;
}

bool array_flash_sync(struct array_flash *flash)
{
    give_back_space(flash);
    flash->is_synced = nand_array_sync(flash->array, 0);
    end_requests(flash);
    return flash->is_synced;
}

/* ---- The array. */

static bool read_source(void *ctx, uint64_t offset, void *buf, size_t len)
{
    return image_read(ctx, offset, buf, len);
}

void array_flash_close(struct array_flash *flash)
{
    free(flash->memory);
    free(flash->is_discarded);
}

bool array_flash_open(struct array_flash *flash, const struct image *image)
{
    struct nand_file_source source = {.ctx = (void *)(uintptr_t)image,
                                      .size_bytes = image->size_bytes,
                                      .read = read_source};
    struct nand_array_config config = {
        .backend = {.ctx = flash,
                    .readv = read_storage,
                    .writev = write_storage,
                    .discard = discard_storage,
                    .flush = flush_storage},
        .file = &image->file,
        .num_ops = 1,
        .ctx = flash,
        .started = ignore_op,
        .finished = ignore_op,
        .synced = note_sync,
    };
    size_t bytes = nand_array_memory_bytes(&image->file.geometry, 1);
    struct nand_file_failure failure;

    *flash = (struct array_flash){.image = image};
    flash->moves =
        (struct ftl_moves){.list = flash->move_list, .max = ARRAY_FLASH_MOVES};
    flash->memory = aligned_alloc(64, (bytes + 63) / 64 * 64);
    flash->is_discarded =
        calloc((size_t)image->num_blocks + 1, sizeof(*flash->is_discarded));
    if (flash->memory == NULL || flash->is_discarded == NULL) {
        image_complain(image->path, "no memory");
        array_flash_close(flash);
        return false;
    }
    config.memory = flash->memory;
    flash->array = nand_array_open(&config, &source, &failure);
    if (flash->array == NULL) {
        image_complain(image->path, "%s", failure.text);
        array_flash_close(flash);
        return false;
    }
    return true;
}

static void mark_die(const struct array_flash *flash, uint32_t die,
                     uint8_t *bad_planes)
{
    const struct nand_geometry *geometry = &flash->image->file.geometry;
    uint32_t dies = nand_geometry_dies(geometry);

    for (uint32_t block = 0; block < geometry->blocks; block++) {
        for (uint32_t plane = 0; plane < geometry->planes; plane++) {
            const struct nand_block *state =
                nand_array_block(flash->array, die / geometry->dies,
                                 die % geometry->dies, plane, block);

            if ((state->flags & NAND_BLOCK_FACTORY_BAD) != 0) {
                bad_planes[(size_t)block * dies + die] |= (uint8_t)BIT(plane);
            }
        }
    }
}

uint32_t array_flash_read_marks(const struct array_flash *flash,
                                uint8_t *bad_planes)
{
    const struct nand_geometry *geometry = &flash->image->file.geometry;
    uint32_t dies = nand_geometry_dies(geometry), dead = 0;

    for (uint32_t die = 0; die < dies; die++) {
        if (nand_array_die_is_dead(flash->array, die / geometry->dies,
                                   die % geometry->dies)) {
            dead++;
        } else {
            mark_die(flash, die, bad_planes);
        }
    }
    return dead;
}
