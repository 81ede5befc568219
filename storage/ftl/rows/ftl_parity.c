/* SPDX-License-Identifier: BSD-2-Clause */
/* Making parity over dies: see ftl_parity.h. */
#include "storage/ftl/map/ftl_memory.h"
#include "storage/ftl/ops/ops.h"
#include "storage/ftl/rows/rows_floor.h"
#include "storage/ftl/space/space.h"

#include <string.h>

enum { XOR_WORD = 8 };

static uint32_t stripe_of(const struct ftl_layout *layout, uint32_t row)
{
    return row / layout->geometry.dies;
}

/* The position of a row in its stripe, in the order of programming. */
static uint32_t order_in_stripe(const struct ftl_layout *layout, uint32_t row)
{
    uint32_t dies = layout->geometry.dies;
    uint32_t wordline = row % layout->superblock_rows / dies;

    return (row % dies + 2 * dies - 1 - wordline % dies) % dies;
}

uint32_t ftl_parity_row(const struct ftl_rows_floor *ftl, uint32_t superblock,
                        uint32_t n)
{
    uint32_t dies = ftl->layout.geometry.dies;
    uint32_t first = superblock * ftl->layout.superblock_rows;
    uint32_t stripe = n / dies;

    if (!ftl->superblocks[superblock].has_parity) {
        return first + n;
    }
    return first + stripe * dies + (stripe + 1 + n % dies) % dies;
}

uint8_t ftl_parity_planes(const struct ftl_rows_floor *ftl, uint32_t row)
{
    uint32_t dies = ftl->layout.geometry.dies;
    uint32_t superblock = row / ftl->layout.superblock_rows;
    uint32_t die = row % dies;
    uint8_t planes = ftl_good_planes(&ftl->space_floor, superblock, die);

    if (!ftl->superblocks[superblock].has_parity) {
        return 0;
    }
    for (uint32_t left = dies - 1 - order_in_stripe(&ftl->layout, row);
         left != 0 && planes != 0; left--) {
        die = (die + 1) % dies;
        planes &= (uint8_t)~ftl_good_planes(&ftl->space_floor, superblock, die);
    }
    return planes;
}

static void xor_word(uint8_t *to, const uint8_t *from)
{
    uint8_t *sum = __builtin_assume_aligned(to, XOR_WORD);
    const uint8_t *other = __builtin_assume_aligned(from, XOR_WORD);
    uint64_t a, b;

    memcpy(&a, sum, XOR_WORD);
    memcpy(&b, other, XOR_WORD);
    a ^= b;
    memcpy(sum, &a, XOR_WORD);
}

struct ftl_accumulator *ftl_parity_find(struct ftl_rows_floor *ftl,
                                        uint32_t row)
{
    uint32_t stripe = stripe_of(&ftl->layout, row);

    for (unsigned int i = 0; i < FTL_ACCUMULATORS; i++) {
        struct ftl_accumulator *at = &ftl->parity.accumulators[i];

        if (at->is_used && at->stripe == stripe) {
            return at;
        }
    }
    return NULL;
}

bool ftl_parity_open(struct ftl_rows_floor *ftl, struct ftl_stream *stream)
{
    uint32_t units = ftl->layout.row_units;
    uint32_t row = ftl_parity_row(ftl, stream->superblock, stream->next_row);

    if (!ftl->superblocks[stream->superblock].has_parity ||
        stream->accumulator != NULL) {
        return true;
    }
    for (unsigned int i = 0; i < FTL_ACCUMULATORS; i++) {
        struct ftl_accumulator *at = &ftl->parity.accumulators[i];

        if (!at->is_used) {
            at->is_used = true;
            at->is_closed = false;
            at->written = 0;
            at->rows = 0;
            at->stripe = stripe_of(&ftl->layout, row);
            memset(at->members, 0, ftl->layout.geometry.dies);
            at->begun = 0;
            at->odd = 0;
            at->spoilt = 0;
            memset(at->system, 0, (size_t)units * FTL_UNIT_SYSTEM);
            stream->accumulator = at;
            return true;
        }
    }
    return false;
}

/* Free an accumulator whose parity is on flash, or will never be. */
static void release_accumulator(struct ftl_accumulator *accumulator)
{
    if (accumulator->is_closed && accumulator->rows == 0) {
        accumulator->is_used = false;
    }
}

void ftl_parity_close(struct ftl_rows_floor *ftl, struct ftl_stream *stream)
{
    struct ftl_accumulator *at = stream->accumulator;
    uint8_t members = 0;

    if (at == NULL) {
        return;
    }
    for (uint32_t die = 0; die < ftl->layout.geometry.dies; die++) {
        members |= at->members[die];
    }
    if ((members & ~at->written) != 0) {
        /* It has no parity. */
        ftl_due_move_soon(&ftl->space_floor,
                          at->stripe / ftl->layout.geometry.wordlines,
                          FTL_CAUSE_REBUILD);
    }
    at->is_closed = true;
    stream->accumulator = NULL;
    release_accumulator(at);
}

void ftl_parity_drop(struct ftl_stream *stream)
{
    if (stream->accumulator != NULL) {
        stream->accumulator->is_used = false;
        stream->accumulator = NULL;
    }
}

void ftl_parity_fill(struct ftl_rows_floor *ftl,
                     const struct ftl_accumulator *accumulator, uint32_t index,
                     struct ftl_flash_unit *unit)
{
    struct ftl_flash_unit place;

    ftl_layout_unit(&ftl->layout, index, &place);
    if ((accumulator->begun & BIT(place.plane)) != 0) {
        unit->data = accumulator->data + (size_t)index * FTL_UNIT_DATA;
        unit->meta = accumulator->meta + (size_t)index * FTL_UNIT_META;
    } else {
        unit->data = ftl->pad;
        unit->meta = ftl->pad;
    }
    memcpy(unit->system, accumulator->system[index], FTL_UNIT_SYSTEM);
    if (accumulator->spoilt != 0) {
        ftl_system_mark_parity(unit->system);
    } else {
        ftl_system_mark_sum(ftl->sums, unit->system,
                            (accumulator->odd & BIT(place.plane)) != 0);
    }
}

static void xor_system(uint8_t to[FTL_UNIT_SYSTEM],
                       const uint8_t from[FTL_UNIT_SYSTEM])
{
    xor_word(to, from);
    xor_word(to + XOR_WORD, from + XOR_WORD);
}

/* Whether all units of a row are XORed with the sum, and data and metadata
 * begin, or go on, in all planes.  Most rows are such rows. */
static bool changes_all(const struct ftl_rows_floor *ftl,
                        const struct ftl_accumulator *accumulator,
                        const struct ftl_request *request, uint8_t planes)
{
    uint8_t begun = accumulator->begun & planes;

    return ftl->config.flash.list_units != NULL &&
           request->flash.num_units == ftl->layout.row_units &&
           planes == request->flash.planes && (begun == 0 || begun == planes);
}

/* XOR all units of a row with the sum. */
static void change_all(struct ftl_rows_floor *ftl,
                       struct ftl_accumulator *accumulator,
                       struct ftl_request *request)
{
    const struct ftl_flash *flash = &ftl->config.flash;
    uint64_t list = flash->list_units(flash->ctx, &request->flash);

    request->flash.is_listed = true;
    ftl_memory_add_row(&ftl->map_floor, accumulator->data, list,
                       request->flash.num_units, accumulator->begun == 0);
}

/* XOR units of a row, in some of its planes, with the sum one by one. */
static void change_units(struct ftl_rows_floor *ftl,
                         struct ftl_accumulator *accumulator,
                         const struct ftl_request *request, uint8_t planes)
{
    uint32_t count = request->flash.num_units;
    const struct ftl_moves *moves = ftl->config.flash.moves;
    uint8_t *data = accumulator->data, *meta = accumulator->meta;
    uint8_t begun = accumulator->begun;

    for (uint32_t i = 0; i < count; i++) {
        const struct ftl_flash_unit *unit = &request->units[i];
        uint32_t index = ftl_layout_index(&ftl->layout, unit);
        bool has_begun = (begun & BIT(unit->plane)) != 0;
        enum ftl_move_kind kind = has_begun ? FTL_MOVE_XOR : FTL_MOVE_COPY;

        if ((planes & BIT(unit->plane)) == 0) {
            continue;
        }
        if (unit->data != ftl->pad || !has_begun) {
            ftl_memory_describe(moves, ftl_memory_next(&ftl->map_floor), kind,
                                data + (size_t)index * FTL_UNIT_DATA,
                                unit->data, FTL_UNIT_DATA);
            ftl_memory_describe(moves, ftl_memory_next(&ftl->map_floor), kind,
                                meta + (size_t)index * FTL_UNIT_META,
                                unit->meta, FTL_UNIT_META);
        }
        xor_system(accumulator->system[index], unit->system);
    }
}

/* XOR the units of a row, in some of its planes, with the sum. */
static void change_sum(struct ftl_rows_floor *ftl,
                       struct ftl_accumulator *accumulator,
                       struct ftl_request *request, uint8_t planes)
{
    if (changes_all(ftl, accumulator, request, planes)) {
        change_all(ftl, accumulator, request);
    } else if (planes != 0) {
        change_units(ftl, accumulator, request, planes);
    }
    accumulator->begun |= planes;
    accumulator->odd ^= planes;
    ftl_memory_run(&ftl->map_floor);
}

void ftl_parity_add_row(struct ftl_rows_floor *ftl,
                        struct ftl_accumulator *accumulator,
                        struct ftl_request *request)
{
    uint8_t planes = request->flash.planes & (uint8_t)~request->parity_planes;

    change_sum(ftl, accumulator, request, planes);
    accumulator->members[request->flash.die] = planes;
    if (request->parity_planes != 0) {
        accumulator->written |= request->parity_planes;
        accumulator->rows++;
    }
}

void ftl_parity_row_done(struct ftl_rows_floor *ftl,
                         struct ftl_request *request,
                         enum ftl_flash_status status)
{
    struct ftl_accumulator *at = ftl_parity_find(ftl, request->row);
    bool is_programmed = status == FTL_FLASH_OK;
    uint8_t planes;

    if (!is_programmed && ftl->superblocks[request->flash.block].has_parity) {
        /* Its stripe has no parity, or is one that cannot do without it. */
        ftl_due_move_soon(&ftl->space_floor, request->flash.block,
                          FTL_CAUSE_REBUILD);
    }
    if (at == NULL) {
        return;
    }
    if (!is_programmed) {
        planes = at->members[request->flash.die] & (uint8_t)~at->written;
        if (status == FTL_FLASH_FAILED) {
            planes &= request->failed_planes;
        }
        change_sum(ftl, at, request, planes);
        ftl_parity_spoil_sum(&ftl->layout, request, at);
        at->members[request->flash.die] &= (uint8_t)~planes;
    }
    if (request->parity_planes != 0) {
        at->rows--;
        release_accumulator(at);
    }
}

/* The rows with parity may be on flash before other rows of the stripe are. */
bool ftl_parity_is_complete(const struct ftl_rows_floor *ftl)
{
    for (uint32_t i = 0; i < ftl->num_streams; i++) {
        if (ftl->streams[i].rows_in_flight != 0) {
            return false;
        }
    }
    for (unsigned int i = 0; i < FTL_ACCUMULATORS; i++) {
        if (ftl->parity.accumulators[i].is_used) {
            return false;
        }
    }
    return true;
}

void ftl_parity_spoil_unit(struct ftl_accumulator *sum, uint32_t index)
{
    if ((sum->spoilt & UINT64_C(1) << index) == 0) {
        sum->spoilt |= UINT64_C(1) << index;
        ftl_system_spoil(sum->system[index]);
    }
}

void ftl_parity_spoil_sum(const struct ftl_layout *layout,
                          const struct ftl_request *request,
                          struct ftl_accumulator *sum)
{
    for (uint32_t i = 0; i < request->flash.num_units; i++) {
        uint32_t index = ftl_layout_index(layout, &request->units[i]);

        if ((request->lost_units & UINT64_C(1) << i) != 0) {
            ftl_parity_spoil_unit(sum, index);
        }
    }
}
