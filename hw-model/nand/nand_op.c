/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One operation of a NAND array, from nand_op_start() to nand_op_finish(): its
 * checks, the search for the next wordline of a block, program and erase.
 */
#include "hw-model/nand/nand_array_internal.h"

#include <string.h>

#include "lib/bytes.h"
#include "lib/crc32.h"

/* The rules of nand.md, section 1. */
enum {
    RULE_ORDER = 1,
    RULE_PLANES = 2,
    RULE_FACTORY_BAD = 3,
};

#define FOR_EACH_PLANE(plane, op)                                              \
    for (unsigned int plane = 0; plane < NAND_OP_PLANES; plane++)              \
        if (((op)->planes & BIT(plane)) != 0)

static struct nand_block *block_of(struct nand_array *array,
                                   const struct nand_op *op, unsigned int plane)
{
    return &array->blocks[nand_op_block(array, op, plane)];
}

static uint8_t pages_of(const struct nand_array *array, bool is_slc)
{
    return nand_profile_mode(array->file.profile, is_slc)->pages;
}

static unsigned int count_planes(const struct nand_op *op)
{
    return (unsigned int)__builtin_popcount(op->planes);
}

/* ---- Requests. */

static uint32_t new_request(struct nand_array *array, struct nand_op *op)
{
    ASSERT(op->work.num_io < NAND_IO_PER_OP);
    op->work.pending++;
    return nand_op_index(array, op) * NAND_IO_PER_OP + op->work.num_io++;
}

void nand_op_readv(struct nand_array *array, struct nand_op *op,
                   uint64_t offset, struct iovec *iov, unsigned int niov)
{
    const struct nand_backend *backend = &array->config.backend;

    backend->readv(backend->ctx, new_request(array, op), offset, iov, niov);
}

void nand_op_writev(struct nand_array *array, struct nand_op *op,
                    uint64_t offset, struct iovec *iov, unsigned int niov)
{
    const struct nand_backend *backend = &array->config.backend;

    backend->writev(backend->ctx, new_request(array, op), offset, iov, niov);
}

struct iovec *nand_op_vector(struct nand_op *op, void *base, size_t len)
{
    struct iovec *iov = &op->work.iov[op->work.num_iov];

    ASSERT(op->work.num_iov < NAND_OP_IOV);
    op->work.num_iov++;
    *iov = (struct iovec){.iov_base = base, .iov_len = len};
    return iov;
}

static void enter_stage(struct nand_op *op, enum nand_stage stage)
{
    op->work.stage = (uint8_t)stage;
    op->work.num_io = 0;
    op->work.num_iov = 0;
}

/* ---- Checks. */

/* Whether an entry of a read names a part of the array, in the right order. */
static enum nand_verdict check_entry(const struct nand_array *array,
                                     const struct nand_op *op, unsigned int i)
{
    const struct nand_geometry *geometry = &array->file.geometry;
    const struct nand_unit *unit = &op->units[i];
    unsigned int end = (unsigned int)unit->offset + unit->length;

    if (unit->plane >= NAND_OP_PLANES || (op->planes & BIT(unit->plane)) == 0 ||
        unit->wordline >= geometry->wordlines ||
        unit->page >= pages_of(array, op->was_slc) ||
        unit->unit >= geometry->units) {
        return NAND_VERDICT_BAD_PLACE;
    }
    if (unit->data != NULL && (unit->length == 0 || end > NAND_UNIT_DATA)) {
        return NAND_VERDICT_BAD_ARGUMENT;
    }
    if (unit->more) {
        const struct nand_unit *next = unit + 1;

        if (i + 1 == op->num_units || unit->data == NULL ||
            next->data == NULL || next->offset < end ||
            next->plane != unit->plane || next->wordline != unit->wordline ||
            next->page != unit->page || next->unit != unit->unit) {
            return NAND_VERDICT_BAD_ARGUMENT;
        }
    }
    return NAND_VERDICT_OK;
}

static enum nand_verdict check_read(const struct nand_array *array,
                                    const struct nand_op *op)
{
    if (op->num_units == 0 || op->num_units > NAND_OP_UNITS) {
        return NAND_VERDICT_BAD_ARGUMENT;
    }
    for (unsigned int i = 0; i < op->num_units; i++) {
        enum nand_verdict verdict = check_entry(array, op, i);

        if (verdict != NAND_VERDICT_OK) {
            return verdict;
        }
    }
    return NAND_VERDICT_OK;
}

static enum nand_verdict check_program(const struct nand_array *array,
                                       const struct nand_op *op)
{
    const struct nand_geometry *geometry = &array->file.geometry;

    if (op->wordline >= geometry->wordlines) {
        return NAND_VERDICT_BAD_PLACE;
    }
    if (op->num_units !=
        count_planes(op) * pages_of(array, op->was_slc) * geometry->units) {
        return NAND_VERDICT_BAD_ARGUMENT;
    }
    for (unsigned int i = 0; i < op->num_units; i++) {
        if (op->units[i].data == NULL) {
            return NAND_VERDICT_BAD_ARGUMENT;
        }
    }
    return NAND_VERDICT_OK;
}

static bool place_is_valid(const struct nand_array *array,
                           const struct nand_op *op)
{
    const struct nand_geometry *geometry = &array->file.geometry;

    if (op->channel >= geometry->channels || op->die >= geometry->dies ||
        op->planes == 0 || op->planes >= BIT(geometry->planes)) {
        return false;
    }
    FOR_EACH_PLANE(plane, op)
    {
        if (op->block[plane] >= geometry->blocks) {
            return false;
        }
    }
    return true;
}

/* What can be checked without storage.  `was_slc` is set. */
static enum nand_verdict check_op(struct nand_array *array, struct nand_op *op)
{
    unsigned int slc_planes = 0;

    if (!place_is_valid(array, op)) {
        return NAND_VERDICT_BAD_PLACE;
    }
    FOR_EACH_PLANE(plane, op)
    {
        const struct nand_block *block = block_of(array, op, plane);

        /* The owner has let two operations change a block at the same time. */
        ASSERT((block->flags & NAND_BLOCK_BUSY) == 0);
        slc_planes += (block->flags & NAND_BLOCK_SLC) != 0;
    }
    op->was_slc = slc_planes != 0;
    if (nand_array_die_is_dead(array, op->channel, op->die)) {
        return NAND_VERDICT_DEAD;
    }
    if (op->kind == NAND_OP_ERASE) {
        return op->is_slc && array->file.profile->slc.pages == 0
                   ? NAND_VERDICT_BAD_ARGUMENT
                   : NAND_VERDICT_OK;
    }
    if (slc_planes != 0 && slc_planes != count_planes(op)) {
        op->rule = RULE_PLANES;
        return NAND_VERDICT_RULE;
    }
    return op->kind == NAND_OP_READ ? check_read(array, op)
                                    : check_program(array, op);
}

/* The rules that depend on what is stored.  0: none is broken. */
static uint8_t broken_rule(struct nand_array *array, const struct nand_op *op)
{
    const unsigned int broken = NAND_BLOCK_HALF_ERASED | NAND_BLOCK_TORN;

    FOR_EACH_PLANE(plane, op)
    {
        const struct nand_block *block = block_of(array, op, plane);

        if ((block->flags & NAND_BLOCK_FACTORY_BAD) != 0) {
            return RULE_FACTORY_BAD;
        }
        if (op->kind == NAND_OP_PROGRAM &&
            ((block->flags & broken) != 0 || block->next != op->wordline)) {
            return RULE_ORDER;
        }
    }
    return 0;
}

/* ---- The search for the next wordline of a block. */

static void block_known(struct nand_block *block, uint32_t next, bool is_torn)
{
    block->next = (uint16_t)next;
    block->flags |= NAND_BLOCK_KNOWN;
    if (is_torn) {
        block->flags |= NAND_BLOCK_TORN;
    }
}

static void send_probe(struct nand_array *array, struct nand_op *op,
                       enum nand_probe probe, uint32_t wordline)
{
    unsigned int plane = op->work.plane;
    const struct nand_block *block = block_of(array, op, plane);
    uint64_t offset = nand_layout_slot(
        &array->layout, nand_op_block(array, op, plane), wordline);

    if (probe == PROBE_END) {
        bool is_slc = (block->flags & NAND_BLOCK_SLC) != 0;

        offset += nand_slot_unit((uint32_t)pages_of(array, is_slc) *
                                 array->file.geometry.units);
    }
    enter_stage(op, STAGE_LOOKUP);
    op->work.probe = (uint8_t)probe;
    nand_op_readv(array, op, offset,
                  nand_op_vector(op, op->work.headers[0][0], NAND_WORDLINE_LEN),
                  1);
}

/* Whether the probe has found that this wordline belongs to the block's state.
 */
static bool probe_found(struct nand_array *array, const struct nand_op *op,
                        uint32_t wordline, bool is_end)
{
    uint32_t index = nand_op_block(array, op, op->work.plane);
    const struct nand_block *block = &array->blocks[index];
    bool is_slc = (block->flags & NAND_BLOCK_SLC) != 0;
    struct nand_wordline found;

    return nand_wordline_parse(&found, is_end, op->work.headers[0][0]) &&
           found.block == index && found.number == block->number &&
           found.wordline == wordline && found.pages == pages_of(array, is_slc);
}

/* Probe between the bounds, or the end of the last wordline that was begun. */
static void probe_between(struct nand_array *array, struct nand_op *op)
{
    struct nand_op_work *work = &op->work;

    if (work->high - work->low > 1) {
        send_probe(array, op, PROBE_MIDDLE, (work->low + work->high) / 2u);
    } else {
        send_probe(array, op, PROBE_END, work->low);
    }
}

/*
 * A probe has ended.
 *
 * @return true when the next wordline of the block is known
 */
static bool probe_done(struct nand_array *array, struct nand_op *op)
{
    uint16_t last = (uint16_t)(array->file.geometry.wordlines - 1);
    struct nand_block *block = block_of(array, op, op->work.plane);
    struct nand_op_work *work = &op->work;
    uint16_t middle;

    switch (work->probe) {
    case PROBE_FIRST:
        if (!probe_found(array, op, 0, false)) {
            block_known(block, 0, false);
            return true;
        }
        work->low = 0;
        work->high = last;
        if (last == 0) {
            probe_between(array, op);
        } else {
            send_probe(array, op, PROBE_LAST, last);
        }
        return false;
    case PROBE_LAST:
        if (probe_found(array, op, last, false)) {
            work->low = last;
        }
        probe_between(array, op);
        return false;
    case PROBE_MIDDLE:
        middle = (uint16_t)((work->low + work->high) / 2);
        if (probe_found(array, op, middle, false)) {
            work->low = middle;
        } else {
            work->high = middle;
        }
        probe_between(array, op);
        return false;
    default:
        block_known(block, work->low + 1u,
                    !probe_found(array, op, work->low, true));
        return true;
    }
}

/*
 * Find the next wordline of every block whose next one is not known.
 *
 * @return true when all are known
 */
static bool look_up_blocks(struct nand_array *array, struct nand_op *op)
{
    const unsigned int useless =
        NAND_BLOCK_KNOWN | NAND_BLOCK_FACTORY_BAD | NAND_BLOCK_HALF_ERASED;

    if (op->kind == NAND_OP_ERASE) {
        return true;
    }
    FOR_EACH_PLANE(plane, op)
    {
        if ((block_of(array, op, plane)->flags & useless) == 0) {
            op->work.plane = (uint8_t)plane;
            send_probe(array, op, PROBE_FIRST, 0);
            return false;
        }
    }
    return true;
}

/* ---- Program and erase. */

static void set_busy(struct nand_array *array, const struct nand_op *op,
                     bool is_busy)
{
    FOR_EACH_PLANE(plane, op)
    {
        struct nand_block *block = block_of(array, op, plane);

        if (is_busy) {
            block->flags |= NAND_BLOCK_BUSY;
        } else {
            block->flags &= (uint8_t)~NAND_BLOCK_BUSY;
        }
    }
}

/* Whether the operation fails in this plane. */
static bool plane_fails(struct nand_array *array, const struct nand_op *op,
                        unsigned int plane)
{
    const struct nand_profile *profile = array->file.profile;
    const struct nand_block *block = block_of(array, op, plane);
    const struct nand_injection *hit;
    struct nand_spot spot = {
        .seed = array->file.seed,
        .block = nand_op_block(array, op, plane),
        .number = block->number,
        .wordline = op->wordline,
    };

    if (nand_inject_event(array, op, plane, NULL, false, &hit) &&
        hit->effect == NAND_EFFECT_FAIL) {
        return true;
    }
    if (op->kind == NAND_OP_PROGRAM) {
        return nand_program_fails(profile, &spot, block->wear);
    }
    spot.number++;
    spot.wordline = 0;
    return (block->flags & NAND_BLOCK_FAILED) != 0 ||
           nand_erase_fails(profile, &spot, block->wear);
}

static void emit_trailer(struct nand_op *op, unsigned int i, uint64_t place,
                         uint32_t number, const uint8_t *meta,
                         const uint8_t *system)
{
    struct nand_trailer trailer = {
        .time_ns = op->work.time_ns,
        .number = number,
        .data_crc = crc32_update(nand_unit_crc_start(place), op->units[i].data,
                                 NAND_UNIT_DATA),
    };

    trailer.rest_crc = nand_rest_crc(place, meta, system, &trailer);
    nand_trailer_emit(&trailer, op->work.trailers[i]);
}

static void emit_wordline(struct nand_array *array, struct nand_op *op,
                          unsigned int plane, bool is_end)
{
    uint32_t index = nand_op_block(array, op, plane);

    nand_wordline_emit(
        &(struct nand_wordline){.block = index,
                                .number = array->blocks[index].number,
                                .wordline = op->wordline,
                                .pages = pages_of(array, op->was_slc),
                                .time_ns = op->work.time_ns},
        is_end, op->work.headers[plane][is_end]);
}

/* Add a unit to the vectors of its slot. */
static void add_unit(struct nand_array *array, struct nand_op *op,
                     unsigned int i, uint32_t block, uint32_t slot_unit)
{
    const struct nand_unit *unit = &op->units[i];
    uint8_t *meta = unit->meta != NULL ? unit->meta : array->ones;
    uint8_t *system = unit->system != NULL ? unit->system : array->ones;

    emit_trailer(op, i, nand_unit_place(block, op->wordline, slot_unit),
                 array->blocks[block].number, meta, system);
    nand_op_vector(op, unit->data, NAND_UNIT_DATA);
    nand_op_vector(op, meta, NAND_UNIT_META);
    nand_op_vector(op, system, NAND_UNIT_SYSTEM);
    nand_op_vector(op, op->work.trailers[i], NAND_TRAILER_LEN);
}

/* Write the slot of one plane, which is the `rank`-th of `op->planes`. */
static void program_plane(struct nand_array *array, struct nand_op *op,
                          unsigned int plane, unsigned int rank)
{
    uint32_t block = nand_op_block(array, op, plane);
    unsigned int units = array->file.geometry.units, slot_unit = 0;
    unsigned int first = op->work.num_iov;
    struct iovec *iov;

    emit_wordline(array, op, plane, false);
    iov = nand_op_vector(op, op->work.headers[plane][false], NAND_WORDLINE_LEN);
    for (unsigned int page = 0; page < pages_of(array, op->was_slc); page++) {
        for (unsigned int unit = 0; unit < units; unit++) {
            unsigned int i = (page * count_planes(op) + rank) * units + unit;

            op->units[i].wordline = op->wordline;
            op->units[i].plane = (uint8_t)plane;
            op->units[i].page = (uint8_t)page;
            op->units[i].unit = (uint8_t)unit;
            add_unit(array, op, i, block, slot_unit++);
        }
    }
    emit_wordline(array, op, plane, true);
    if (op->finishes_at_once && (op->failed_planes & BIT(plane)) == 0) {
        nand_op_vector(op, op->work.headers[plane][true], NAND_WORDLINE_LEN);
    }
    nand_op_writev(array, op,
                   nand_layout_slot(&array->layout, block, op->wordline), iov,
                   op->work.num_iov - first);
}

static void start_program(struct nand_array *array, struct nand_op *op)
{
    unsigned int rank = 0;

    enter_stage(op, STAGE_PROGRAM);
    FOR_EACH_PLANE(plane, op)
    {
        program_plane(array, op, plane, rank++);
    }
}

/* The flags that an erasure leaves. */
static uint8_t erased_flags(const struct nand_op *op, unsigned int plane,
                            bool is_finished)
{
    unsigned int flags = op->is_slc ? NAND_BLOCK_SLC : 0;

    if (!is_finished) {
        flags |= NAND_BLOCK_HALF_ERASED;
    } else if ((op->failed_planes & BIT(plane)) != 0) {
        flags |= NAND_BLOCK_HALF_ERASED | NAND_BLOCK_FAILED;
    }
    return (uint8_t)flags;
}

/* The state of the block during and after its erasure. */
static struct nand_block erased_block(struct nand_array *array,
                                      const struct nand_op *op,
                                      unsigned int plane, bool is_finished)
{
    const struct nand_block *block = block_of(array, op, plane);
    uint32_t wear = nand_erase_wear(array->file.profile, op->is_slc);

    return (struct nand_block){
        .number = block->number + 1,
        .wear = block->wear + MIN(wear, UINT32_MAX - block->wear),
        .flags = erased_flags(op, plane, is_finished),
    };
}

static void write_erased_records(struct nand_array *array, struct nand_op *op,
                                 enum nand_stage stage, bool is_finished)
{
    enter_stage(op, stage);
    FOR_EACH_PLANE(plane, op)
    {
        struct nand_block block = erased_block(array, op, plane, is_finished);
        uint32_t index = nand_op_block(array, op, plane);

        nand_array_emit_record(&block, index, op->work.time_ns,
                               op->work.records[plane]);
        nand_op_writev(
            array, op, nand_layout_record(index),
            nand_op_vector(op, op->work.records[plane], NAND_RECORD_LEN), 1);
    }
}

/*
 * Give back the storage of the slots.
 *
 * @return whether requests are in progress
 */
static bool discard_slots(struct nand_array *array, struct nand_op *op)
{
    const struct nand_backend *backend = &array->config.backend;

    enter_stage(op, STAGE_DISCARD);
    FOR_EACH_PLANE(plane, op)
    {
        const struct nand_block *block = block_of(array, op, plane);

        if ((block->flags & NAND_BLOCK_KNOWN) == 0 || block->next != 0) {
            backend->discard(backend->ctx, new_request(array, op),
                             nand_layout_slot(&array->layout,
                                              nand_op_block(array, op, plane),
                                              0),
                             array->layout.block_bytes);
        }
    }
    return op->work.pending != 0;
}

/* ---- The course of an operation. */

static bool end_op(struct nand_op *op, enum nand_verdict verdict)
{
    op->verdict = (uint8_t)verdict;
    enter_stage(op, STAGE_IDLE);
    return true;
}

/* Start the change of a program or an erase.  The generation is in storage. */
static void start_change(struct nand_array *array, struct nand_op *op)
{
    FOR_EACH_PLANE(plane, op)
    {
        if (plane_fails(array, op, plane)) {
            op->failed_planes |= (uint8_t)BIT(plane);
        }
    }
    op->verdict =
        op->failed_planes != 0 ? NAND_VERDICT_FAILED : NAND_VERDICT_OK;
    if (op->kind == NAND_OP_PROGRAM) {
        start_program(array, op);
    } else {
        write_erased_records(array, op, STAGE_ERASE, op->finishes_at_once);
    }
}

/* All blocks are known.  @return whether the operation is started already */
static bool start_known(struct nand_array *array, struct nand_op *op)
{
    if (op->kind == NAND_OP_READ) {
        enter_stage(op, STAGE_READ);
        if (nand_op_read(array, op)) {
            return false;
        }
        nand_op_read_done(array, op);
        enter_stage(op, STAGE_STARTED);
        return true;
    }
    op->rule = broken_rule(array, op);
    if (op->rule != 0) {
        return end_op(op, NAND_VERDICT_RULE);
    }
    set_busy(array, op, true);
    enter_stage(op, STAGE_TOUCH);
    if (nand_array_touch(array, op)) {
        start_change(array, op);
    }
    return false;
}

bool nand_op_start(struct nand_array *array, struct nand_op *op,
                   uint64_t now_ns)
{
    const struct nand_injection *hit;
    enum nand_verdict verdict;

    ASSERT(op->work.is_used && op->work.stage == STAGE_IDLE);
    op->work.time_ns = nand_array_time(array, now_ns);
    op->work.crossed = 0;
    verdict = check_op(array, op);
    if (verdict != NAND_VERDICT_OK) {
        return end_op(op, verdict);
    }
    if (array->num_injections != 0 &&
        nand_inject_event(array, op, (unsigned int)__builtin_ctz(op->planes),
                          &op->units[0], true, &hit)) {
        nand_array_kill_die(array, op);
        return end_op(op, NAND_VERDICT_DEAD);
    }
    return look_up_blocks(array, op) && start_known(array, op);
}

/* Storage has failed: nobody knows what the blocks hold. */
static void forget_blocks(struct nand_array *array, const struct nand_op *op)
{
    FOR_EACH_PLANE(plane, op)
    {
        struct nand_block *block = block_of(array, op, plane);

        if (op->kind == NAND_OP_PROGRAM) {
            block_known(block, op->wordline + 1u, true);
        } else {
            *block = erased_block(array, op, plane, false);
            block->flags |= NAND_BLOCK_DIRTY;
        }
    }
}

static void op_started(struct nand_array *array, struct nand_op *op)
{
    if (op->storage_errno != 0) {
        if (op->work.stage == STAGE_PROGRAM || op->work.stage == STAGE_ERASE) {
            forget_blocks(array, op);
        }
        if (op->kind != NAND_OP_READ) {
            set_busy(array, op, false);
        }
        end_op(op, NAND_VERDICT_STORAGE);
    } else {
        enter_stage(op, STAGE_STARTED);
    }
    array->config.started(array->config.ctx, op);
}

void nand_op_touched(struct nand_array *array, struct nand_op *op, int result)
{
    if (result == 0) {
        start_change(array, op);
    } else {
        op->storage_errno = -result;
        op_started(array, op);
    }
}

/* The change is complete: make it the state of the blocks. */
static void apply_change(struct nand_array *array, struct nand_op *op)
{
    FOR_EACH_PLANE(plane, op)
    {
        struct nand_block *block = block_of(array, op, plane);

        if (op->kind == NAND_OP_PROGRAM) {
            block_known(block, op->wordline + 1u,
                        (op->failed_planes & BIT(plane)) != 0);
        } else {
            *block = erased_block(array, op, plane, true);
            block_known(block, 0, false);
        }
    }
}

static void finish_change(struct nand_array *array, struct nand_op *op)
{
    if (op->storage_errno != 0) {
        forget_blocks(array, op);
        op->verdict = NAND_VERDICT_STORAGE;
    } else {
        apply_change(array, op);
    }
    set_busy(array, op, false);
}

/* Store the read counters that have reached a multiple of READS_STORED. */
static void store_reads(struct nand_array *array, struct nand_op *op)
{
    enter_stage(op, STAGE_FINISH);
    FOR_EACH_PLANE(plane, op)
    {
        if ((op->work.crossed & BIT(plane)) != 0) {
            struct nand_block *block = block_of(array, op, plane);
            uint32_t index = nand_op_block(array, op, plane);

            nand_array_emit_record(block, index, op->work.time_ns,
                                   op->work.records[plane]);
            nand_op_writev(
                array, op, nand_layout_record(index),
                nand_op_vector(op, op->work.records[plane], NAND_RECORD_LEN),
                1);
        }
    }
}

/* Write the ends of the slots, which make the wordlines programmed. */
static bool finish_program(struct nand_array *array, struct nand_op *op)
{
    uint32_t offset = nand_slot_unit((uint32_t)pages_of(array, op->was_slc) *
                                     array->file.geometry.units);

    enter_stage(op, STAGE_FINISH);
    FOR_EACH_PLANE(plane, op)
    {
        if ((op->failed_planes & BIT(plane)) == 0) {
            nand_op_writev(array, op,
                           nand_layout_slot(&array->layout,
                                            nand_op_block(array, op, plane),
                                            op->wordline) +
                               offset,
                           nand_op_vector(op, op->work.headers[plane][true],
                                          NAND_WORDLINE_LEN),
                           1);
        }
    }
    return op->work.pending != 0;
}

bool nand_op_finish(struct nand_array *array, struct nand_op *op,
                    uint64_t now_ns)
{
    ASSERT(op->work.stage == STAGE_STARTED);
    if (op->kind == NAND_OP_READ) {
        if (op->work.crossed != 0) {
            store_reads(array, op);
            return false;
        }
        enter_stage(op, STAGE_IDLE);
        return true;
    }
    if (!op->finishes_at_once) {
        if (op->kind == NAND_OP_ERASE) {
            op->work.time_ns = nand_array_time(array, now_ns);
            write_erased_records(array, op, STAGE_FINISH, true);
            return false;
        }
        if (finish_program(array, op)) {
            return false;
        }
    }
    finish_change(array, op);
    enter_stage(op, STAGE_IDLE);
    return true;
}

void nand_op_continue(struct nand_array *array, struct nand_op *op)
{
    switch (op->work.stage) {
    case STAGE_LOOKUP:
        if (op->storage_errno != 0) {
            end_op(op, NAND_VERDICT_STORAGE);
        } else if (!probe_done(array, op) || !look_up_blocks(array, op) ||
                   !start_known(array, op)) {
            return;
        }
        array->config.started(array->config.ctx, op);
        return;
    case STAGE_READ:
        if (op->storage_errno == 0) {
            nand_op_read_done(array, op);
        }
        op_started(array, op);
        return;
    case STAGE_ERASE:
        if (op->storage_errno != 0 || !discard_slots(array, op)) {
            op_started(array, op);
        }
        return;
    case STAGE_DISCARD:
        /* Data of older erasures may stay: their erase number is another. */
        op->storage_errno = 0;
        op_started(array, op);
        return;
    case STAGE_PROGRAM:
        op_started(array, op);
        return;
    default:
        ASSERT(op->work.stage == STAGE_FINISH);
        if (op->kind == NAND_OP_READ) {
            op->storage_errno = 0; /* The counter is still in memory. */
        } else {
            finish_change(array, op);
        }
        enter_stage(op, STAGE_IDLE);
        array->config.finished(array->config.ctx, op);
        return;
    }
}
