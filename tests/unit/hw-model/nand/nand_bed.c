/* SPDX-License-Identifier: BSD-2-Clause */
/* A small NAND array in memory: see nand_bed.h. */
#include "tests/unit/hw-model/nand/nand_bed.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lib/bytes.h"
#include "lib/random.h"

static void io_done(void *ctx, uint32_t id, int result)
{
    struct bed *bed = ctx;

    nand_array_io_done(bed->array, id, result);
}

static void op_done(void *ctx, struct nand_op *op)
{
    struct bed *bed = ctx;

    bed->done = op;
    if (bed->on_done != NULL) {
        bed->on_done(bed, op);
    }
}

static void sync_done(void *ctx, bool success)
{
    struct bed *bed = ctx;

    bed->synced = true;
    bed->sync_result = success;
}

static void open_array(struct bed *bed)
{
    struct nand_file_source source = nand_ram_source(&bed->ram);
    struct nand_file_failure failure;

    if (!nand_file_open(&bed->file, &source, &failure)) {
        fail_msg("%s", failure.text);
    }
    bed->array = nand_array_open(
        &(struct nand_array_config){
            .backend = nand_ram_backend(&bed->ram),
            .file = &bed->file,
            .nonce = bed->nonce,
            .num_ops = BED_OPS,
            .memory = bed->memory,
            .ctx = bed,
            .started = op_done,
            .finished = op_done,
            .synced = sync_done,
        },
        &source, &failure);
    if (bed->array == NULL) {
        fail_msg("%s", failure.text);
    }
}

struct bed *bed_new_geometry(const char *profile,
                             const struct nand_geometry *geometry,
                             uint64_t seed)
{
    struct bed *bed = calloc(1, sizeof(*bed));
    struct nand_layout layout;

    assert_non_null(bed);
    nand_layout(&layout, geometry);
    nand_ram_init(&bed->ram, calloc(1, layout.size_bytes), layout.size_bytes);
    assert_non_null(bed->ram.bytes);
    bed->ram.done = io_done;
    bed->ram.ctx = bed;
    bed->budget = BED_FOREVER;
    nand_file_new(&bed->file, nand_profile_find(profile), geometry, seed);
    nand_ram_create(&bed->ram, &bed->file);
    assert_int_equal(posix_memalign(&bed->memory, 64,
                                    nand_array_memory_bytes(geometry, BED_OPS)),
                     0);
    open_array(bed);
    return bed;
}

struct bed *bed_new(const char *profile, unsigned int blocks,
                    unsigned int wordlines)
{
    const struct nand_profile *part = nand_profile_find(profile);

    assert_non_null(part);
    return bed_new_geometry(profile,
                            &(struct nand_geometry){
                                .channels = 1,
                                .dies = 1,
                                .planes = part->planes,
                                .units = part->units,
                                .pages = part->native.pages,
                                .blocks = (uint16_t)blocks,
                                .wordlines = (uint16_t)wordlines,
                            },
                            BED_SEED);
}

void bed_free(struct bed *bed)
{
    free(bed->ram.bytes);
    free(bed->memory);
    free(bed);
}

void bed_reopen(struct bed *bed)
{
    bed->ram.queue.count = 0;
    open_array(bed);
}

struct nand_op *bed_op(struct bed *bed, enum nand_op_kind kind, uint8_t planes,
                       unsigned int block)
{
    struct nand_op *op = nand_op_get(bed->array);

    assert_non_null(op);
    memset(op->units, 0, sizeof(op->units));
    op->kind = (uint8_t)kind;
    op->planes = planes;
    for (unsigned int plane = 0; plane < NAND_OP_PLANES; plane++) {
        op->block[plane] = (uint16_t)block;
    }
    return op;
}

/* Complete requests until `op` is done. */
static bool wait_for(struct bed *bed, const struct nand_op *op)
{
    while (bed->done != op) {
        if (bed->budget == 0) {
            return false;
        }
        bed->budget--;
        assert_true(nand_ram_step(&bed->ram, 0));
    }
    bed->done = NULL;
    return true;
}

bool bed_start(struct bed *bed, struct nand_op *op)
{
    bed->done = NULL;
    return nand_op_start(bed->array, op, bed->now_ns) || wait_for(bed, op);
}

bool bed_finish(struct bed *bed, struct nand_op *op)
{
    bed->done = NULL;
    return nand_op_finish(bed->array, op, bed->now_ns) || wait_for(bed, op);
}

bool bed_sync(struct bed *bed)
{
    bed->synced = false;
    if (nand_array_sync(bed->array, bed->now_ns)) {
        return true;
    }
    while (!bed->synced) {
        assert_true(nand_ram_step(&bed->ram, 0));
    }
    return bed->sync_result;
}

/* Start, finish and put an operation. */
static int run_op(struct bed *bed, struct nand_op *op)
{
    int verdict;

    if (!bed_start(bed, op)) {
        return -1;
    }
    if (op->verdict == NAND_VERDICT_OK || op->verdict == NAND_VERDICT_FAILED) {
        if (!bed_finish(bed, op)) {
            return -1;
        }
    }
    verdict = op->verdict;
    nand_op_put(bed->array, op);
    return verdict;
}

int bed_erase(struct bed *bed, uint8_t planes, unsigned int block, bool is_slc,
              bool at_once)
{
    struct nand_op *op = bed_op(bed, NAND_OP_ERASE, planes, block);

    op->is_slc = is_slc;
    op->finishes_at_once = at_once;
    return run_op(bed, op);
}

static uint64_t content_seed(unsigned int plane, unsigned int block,
                             unsigned int wordline, unsigned int page,
                             unsigned int unit, uint32_t version)
{
    return random_mix((uint64_t)version << 32 | block << 20 | wordline << 10 |
                      plane << 8 | page << 4 | unit);
}

static void fill_bytes(uint8_t *at, size_t len, uint64_t seed)
{
    for (size_t i = 0; i < len; i += 8) {
        put_le64(at + i, seed + i * RANDOM_STEP);
    }
}

static bool is_filled(const uint8_t *at, size_t len, uint64_t seed)
{
    for (size_t i = 0; i < len; i += 8) {
        if (get_le64(at + i) != seed + i * RANDOM_STEP) {
            return false;
        }
    }
    return true;
}

bool bed_content_is(const struct bed *bed, unsigned int i, unsigned int plane,
                    unsigned int block, unsigned int wordline,
                    unsigned int page, unsigned int unit, uint32_t version)
{
    uint64_t seed = content_seed(plane, block, wordline, page, unit, version);

    return is_filled(bed->data[i], NAND_UNIT_DATA, seed) &&
           is_filled(bed->meta[i], NAND_UNIT_META, ~seed) &&
           is_filled(bed->system[i], NAND_UNIT_SYSTEM, seed ^ 1);
}

struct nand_op *bed_program_op(struct bed *bed, uint8_t planes,
                               unsigned int block, unsigned int wordline,
                               uint32_t version, bool at_once)
{
    struct nand_op *op = bed_op(bed, NAND_OP_PROGRAM, planes, block);
    const struct nand_geometry *geometry = nand_array_geometry(bed->array);
    bool is_slc = false;
    unsigned int pages, i = 0;

    for (unsigned int plane = 0; plane < geometry->planes; plane++) {
        if ((planes & BIT(plane)) != 0) {
            is_slc |=
                (bed_block(bed, plane, block)->flags & NAND_BLOCK_SLC) != 0;
        }
    }
    pages = is_slc ? 1 : geometry->pages;
    op->wordline = (uint16_t)wordline;
    op->finishes_at_once = at_once;
    for (unsigned int page = 0; page < pages; page++) {
        for (unsigned int plane = 0; plane < geometry->planes; plane++) {
            if ((planes & BIT(plane)) == 0) {
                continue;
            }
            for (unsigned int unit = 0; unit < geometry->units; unit++) {
                uint64_t seed =
                    content_seed(plane, block, wordline, page, unit, version);

                fill_bytes(bed->data[i], NAND_UNIT_DATA, seed);
                fill_bytes(bed->meta[i], NAND_UNIT_META, ~seed);
                fill_bytes(bed->system[i], NAND_UNIT_SYSTEM, seed ^ 1);
                op->units[i] = (struct nand_unit){
                    .data = bed->data[i],
                    .meta = bed->meta[i],
                    .system = bed->system[i],
                };
                i++;
            }
        }
    }
    op->num_units = (uint16_t)i;
    return op;
}

int bed_program(struct bed *bed, uint8_t planes, unsigned int block,
                unsigned int wordline, uint32_t version, bool at_once)
{
    return run_op(
        bed, bed_program_op(bed, planes, block, wordline, version, at_once));
}

int bed_read_unit(struct bed *bed, unsigned int plane, unsigned int block,
                  unsigned int wordline, unsigned int page, unsigned int unit,
                  struct nand_unit *result)
{
    struct nand_op *op = bed_op(bed, NAND_OP_READ, (uint8_t)BIT(plane), block);
    int verdict;

    memset(bed->data[0], 0x11, NAND_UNIT_DATA);
    op->num_units = 1;
    op->units[0] = (struct nand_unit){
        .data = bed->data[0],
        .meta = bed->meta[0],
        .system = bed->system[0],
        .length = NAND_UNIT_DATA,
        .wordline = (uint16_t)wordline,
        .plane = (uint8_t)plane,
        .page = (uint8_t)page,
        .unit = (uint8_t)unit,
    };
    verdict = run_op(bed, op);
    if (result != NULL) {
        *result = op->units[0];
    }
    return verdict;
}

enum nand_unit_status bed_read(struct bed *bed, unsigned int plane,
                               unsigned int block, unsigned int wordline,
                               unsigned int page, unsigned int unit,
                               uint32_t version)
{
    struct nand_unit result;

    assert_int_equal(
        bed_read_unit(bed, plane, block, wordline, page, unit, &result),
        NAND_VERDICT_OK);
    if (result.status == NAND_UNIT_GOOD) {
        assert_true(bed_content_is(bed, 0, plane, block, wordline, page, unit,
                                   version));
    }
    return result.status;
}

const struct nand_block *bed_block(const struct bed *bed, unsigned int plane,
                                   unsigned int block)
{
    return nand_array_block(bed->array, 0, 0, plane, block);
}
