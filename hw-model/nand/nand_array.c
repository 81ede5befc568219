/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An array of NAND flash: its blocks and operations in memory, and what is
 * stored of the array as a whole.  See nand_array.h.
 */
#include "hw-model/nand/nand_array_internal.h"

#include <string.h>

#include "lib/regfields.h"
/* The registers after the words they need. */
#include "hw-model/regs/nand.h"

_Static_assert((int)NAND_UNIT_DATA == (int)NAND_DATA_LEN &&
                   (int)NAND_UNIT_META == (int)NAND_META_LEN &&
                   (int)NAND_UNIT_SYSTEM == (int)NAND_SYSTEM_LEN &&
                   (int)NAND_OP_PLANES == (int)NAND_PLANES_MAX &&
                   (int)NAND_OP_UNITS == (int)NAND_READ_ENTRIES_MAX,
               "regs/nand.h has other sizes");
_Static_assert((int)NAND_DEAD_DIES_LEN * 8 ==
                   (int)NAND_CHANNELS_MAX * NAND_DIES_MAX,
               "one bit for each die");

enum { MEMORY_ALIGN = 64 };

static size_t align_up(size_t n)
{
    return (n + MEMORY_ALIGN - 1) / MEMORY_ALIGN * MEMORY_ALIGN;
}

size_t nand_array_memory_bytes(const struct nand_geometry *geometry,
                               unsigned int num_ops)
{
    return align_up(sizeof(struct nand_array)) +
           num_ops * align_up(sizeof(struct nand_op)) +
           align_up(nand_geometry_blocks(geometry) *
                    sizeof(struct nand_block)) +
           (size_t)num_ops * NAND_OP_UNITS * NAND_UNIT_DATA;
}

/* ---- Opening. */

static bool load_records(struct nand_array *array,
                         const struct nand_file_source *source,
                         struct nand_file_failure *failure)
{
    for (uint32_t first = 0; first < array->num_blocks;
         first += NAND_SYNC_RECORDS) {
        uint32_t count =
            MIN(array->num_blocks - first, (uint32_t)NAND_SYNC_RECORDS);

        if (!source->read(source->ctx, nand_layout_record(first),
                          array->own_buf, (size_t)count * NAND_RECORD_LEN)) {
            nand_file_fail(failure, NAND_FILE_UNREADABLE, first);
            return false;
        }
        for (uint32_t i = 0; i < count; i++) {
            struct nand_record record;

            if (!nand_record_parse(&record, first + i,
                                   array->own_buf +
                                       (size_t)i * NAND_RECORD_LEN)) {
                nand_file_fail(failure, NAND_FILE_DAMAGED_BLOCK, first + i);
                return false;
            }
            array->blocks[first + i] = (struct nand_block){
                .number = record.number,
                .wear = record.wear,
                .reads = record.reads,
                .flags = record.flags,
            };
            array->base_ns = MAX(array->base_ns, record.time_ns);
        }
    }
    return true;
}

struct nand_array *nand_array_open(const struct nand_array_config *config,
                                   const struct nand_file_source *source,
                                   struct nand_file_failure *failure)
{
    struct nand_array *array = config->memory;
    uint8_t *memory = config->memory;

    ASSERT(config->num_ops >= 1);
    ASSERT((uintptr_t)memory % MEMORY_ALIGN == 0);
    memset(array, 0, sizeof(*array));
    array->config = *config;
    array->file = *config->file;
    array->config.file = &array->file;
    nand_layout(&array->layout, &array->file.geometry);
    array->num_blocks = nand_geometry_blocks(&array->file.geometry);
    array->stored = array->file.state;
    array->base_ns = array->file.state.time_ns;
    memset(array->ones, 0xff, sizeof(array->ones));
    memory += align_up(sizeof(*array));
    array->ops = (void *)memory;
    memory += config->num_ops * align_up(sizeof(struct nand_op));
    array->blocks = (void *)memory;
    memory += align_up(array->num_blocks * sizeof(struct nand_block));
    for (uint32_t i = 0; i < config->num_ops; i++) {
        struct nand_op *op = nand_op_at(array, i);

        op->work.rest_data =
            (void *)(memory + (size_t)i * NAND_OP_UNITS * NAND_UNIT_DATA);
        op->work.next_free = i + 1;
        op->work.is_used = false;
    }
    if (!load_records(array, source, failure)) {
        return NULL;
    }
    nand_file_fail(failure, NAND_FILE_OK, 0);
    return array;
}

const struct nand_geometry *nand_array_geometry(const struct nand_array *array)
{
    return &array->file.geometry;
}

const struct nand_profile *nand_array_profile(const struct nand_array *array)
{
    return array->file.profile;
}

void nand_array_set_times(struct nand_array *array,
                          const struct nand_profile *profile)
{
    ASSERT(profile->planes == array->file.profile->planes);
    array->file.profile = profile;
}

const struct nand_generation *nand_array_generation(
    const struct nand_array *array)
{
    return &array->file.state.generation;
}

bool nand_array_is_synced(const struct nand_array *array)
{
    return array->own == OWN_IDLE && array->stored.is_clean &&
           array->stored.generation.nonce != 0;
}

const struct nand_block *nand_array_block(const struct nand_array *array,
                                          unsigned int channel,
                                          unsigned int die, unsigned int plane,
                                          unsigned int block)
{
    return &array->blocks[nand_block_index(&array->file.geometry, channel, die,
                                           plane, block)];
}

uint64_t nand_array_time(struct nand_array *array, uint64_t now_ns)
{
    if (!array->has_origin) {
        array->has_origin = true;
        array->origin_ns = now_ns;
    }
    return array->base_ns + (now_ns - array->origin_ns);
}

/* ---- Operations. */

struct nand_op *nand_op_at(struct nand_array *array, uint32_t index)
{
    uint8_t *ops = (void *)array->ops;

    ASSERT(index < array->config.num_ops);
    return (void *)(ops + index * align_up(sizeof(struct nand_op)));
}

uint32_t nand_op_index(const struct nand_array *array, const struct nand_op *op)
{
    return (
        uint32_t)((size_t)((const uint8_t *)op - (const uint8_t *)array->ops) /
                  align_up(sizeof(struct nand_op)));
}

struct nand_op *nand_op_get(struct nand_array *array)
{
    struct nand_op *op;

    if (array->free_op == array->config.num_ops) {
        return NULL;
    }
    op = nand_op_at(array, array->free_op);
    array->free_op = op->work.next_free;
    memset(op, 0, offsetof(struct nand_op, units));
    op->work.is_used = true;
    op->work.is_waiting = false;
    op->work.is_woken = false;
    op->work.cuts_power = false;
    op->work.stage = STAGE_IDLE;
    op->work.pending = 0;
    array->active_ops++;
    return op;
}

void nand_op_put(struct nand_array *array, struct nand_op *op)
{
    ASSERT(op->work.is_used && op->work.stage == STAGE_IDLE);
    op->work.is_used = false;
    op->work.next_free = array->free_op;
    array->free_op = nand_op_index(array, op);
    array->active_ops--;
}

bool nand_array_is_quiet(const struct nand_array *array)
{
    return array->active_ops == 0 && array->own == OWN_IDLE;
}

/* ---- What is stored of the array as a whole. */

static void write_own(struct nand_array *array, enum nand_own own,
                      uint64_t offset, size_t len)
{
    const struct nand_backend *backend = &array->config.backend;

    array->own = (uint8_t)own;
    array->own_iov = (struct iovec){.iov_base = array->own_buf, .iov_len = len};
    backend->writev(backend->ctx, array->config.num_ops * NAND_IO_PER_OP,
                    offset, &array->own_iov, 1);
}

/* The contents get a generation that no other file has. */
static void begin_generation(struct nand_array *array)
{
    array->file.state.generation.count++;
    array->file.state.generation.nonce = array->config.nonce;
}

static void write_state(struct nand_array *array, enum nand_own own)
{
    struct nand_state *state = &array->file.state;

    state->number++;
    state->is_clean = own == OWN_SYNC_STATE;
    array->writing = *state;
    nand_state_emit(state, array->own_buf);
    write_own(array, own, nand_layout_state(state->number), NAND_STATE_LEN);
}

/* The attempt to write the state has ended. */
static void note_state(struct nand_array *array, int result)
{
    struct nand_state *state = &array->file.state;

    if (result == 0) {
        array->stored = array->writing;
        return;
    }
    /* The next attempt uses the same copy: the other one is whole. */
    state->number = array->stored.number;
    state->generation = array->stored.generation;
    state->is_clean = array->stored.is_clean;
}

/* Write the state before a change, or because a die has died. */
static void write_changed_state(struct nand_array *array)
{
    if (!array->is_touched) {
        begin_generation(array);
    }
    write_state(array, OWN_STATE);
}

bool nand_array_touch(struct nand_array *array, struct nand_op *op)
{
    if (array->is_touched) {
        return true;
    }
    op->work.is_waiting = true;
    if (array->own == OWN_IDLE) {
        write_changed_state(array);
    }
    return false;
}

static bool die_is_dead(const struct nand_state *state, uint32_t die)
{
    return (state->dead_dies[die / 8] & BIT(die % 8)) != 0;
}

static uint32_t die_of(const struct nand_array *array, const struct nand_op *op)
{
    return (uint32_t)op->channel * array->file.geometry.dies + op->die;
}

bool nand_array_die_is_dead(const struct nand_array *array,
                            unsigned int channel, unsigned int die)
{
    return die_is_dead(&array->stored,
                       channel * array->file.geometry.dies + die);
}

bool nand_array_die_is_dying(const struct nand_array *array,
                             const struct nand_op *op)
{
    uint32_t die = die_of(array, op);

    return die_is_dead(&array->file.state, die) &&
           !die_is_dead(&array->stored, die);
}

void nand_array_kill_die(struct nand_array *array, struct nand_op *op)
{
    uint32_t die = die_of(array, op);

    array->file.state.dead_dies[die / 8] |= (uint8_t)BIT(die % 8);
    op->work.is_waiting = true;
    if (array->own == OWN_IDLE) {
        write_changed_state(array);
    }
}

/*
 * Mark the operations that waited for the attempt to write the state.
 *
 * @return whether others still wait, whose die has died meanwhile
 */
static bool mark_woken(struct nand_array *array)
{
    bool is_more = false;

    for (uint32_t i = 0; i < array->config.num_ops; i++) {
        struct nand_op *op = nand_op_at(array, i);

        if (!op->work.is_used || !op->work.is_waiting) {
            continue;
        }
        if (op->work.stage == STAGE_DEATH &&
            !die_is_dead(&array->writing, die_of(array, op))) {
            is_more = true;
        } else {
            op->work.is_waiting = false;
            op->work.is_woken = true;
        }
    }
    return is_more;
}

/* The owner may start other operations meanwhile; they wait for the next
 * attempt. */
static void continue_woken(struct nand_array *array, int result)
{
    for (uint32_t i = 0; i < array->config.num_ops; i++) {
        struct nand_op *op = nand_op_at(array, i);

        if (!op->work.is_used || !op->work.is_woken) {
            continue;
        }
        op->work.is_woken = false;
        if (op->work.stage == STAGE_DEATH) {
            nand_op_died(array, op, result);
        } else {
            nand_op_touched(array, op, result);
        }
    }
}

/* The state is in storage, or could not be written. */
static void state_written(struct nand_array *array, int result)
{
    array->own = OWN_IDLE;
    note_state(array, result);
    if (result == 0) {
        array->is_touched = true;
    }
    if (mark_woken(array)) {
        write_changed_state(array);
    }
    continue_woken(array, result);
}

void nand_array_emit_record(const struct nand_block *block, uint32_t index,
                            uint64_t time_ns, uint8_t buf[NAND_RECORD_LEN])
{
    nand_record_emit(&(struct nand_record){.number = block->number,
                                           .wear = block->wear,
                                           .reads = block->reads,
                                           .flags = block->flags,
                                           .time_ns = time_ns},
                     index, buf);
}

/*
 * Whether the contents need another generation, although no operation has
 * changed them since the array was opened or synchronised.  After a power cut,
 * another copy of the file may have the same generation and other contents.
 */
static bool needs_generation(const struct nand_array *array)
{
    const struct nand_state *stored = &array->stored;

    return !stored->is_clean ||
           (stored->generation.nonce == 0 && array->config.nonce != 0) ||
           memcmp(stored->dead_dies, array->file.state.dead_dies,
                  NAND_DEAD_DIES_LEN) != 0;
}

/* Write the next records that are older than what is in memory. */
static void sync_records(struct nand_array *array)
{
    uint32_t first = array->sync_first + array->sync_count, count = 0;

    while (first < array->num_blocks &&
           (array->blocks[first].flags & NAND_BLOCK_DIRTY) == 0) {
        first++;
    }
    while (first + count < array->num_blocks && count < NAND_SYNC_RECORDS &&
           (array->blocks[first + count].flags & NAND_BLOCK_DIRTY) != 0) {
        nand_array_emit_record(&array->blocks[first + count], first + count,
                               array->file.state.time_ns,
                               array->own_buf +
                                   (size_t)count * NAND_RECORD_LEN);
        count++;
    }
    array->sync_first = first;
    array->sync_count = count;
    if (count == 0) {
        if (!array->is_touched && needs_generation(array)) {
            begin_generation(array);
        }
        write_state(array, OWN_SYNC_STATE);
    } else {
        write_own(array, OWN_RECORDS, nand_layout_record(first),
                  (size_t)count * NAND_RECORD_LEN);
    }
}

bool nand_array_sync(struct nand_array *array, uint64_t now_ns)
{
    ASSERT(nand_array_is_quiet(array));
    array->file.state.time_ns = nand_array_time(array, now_ns);
    array->sync_first = 0;
    array->sync_count = 0;
    sync_records(array);
    return false;
}

static void own_done(struct nand_array *array, int result)
{
    const struct nand_backend *backend = &array->config.backend;
    enum nand_own own = array->own;

    if (own == OWN_STATE) {
        state_written(array, result);
        return;
    }
    if (own == OWN_SYNC_STATE) {
        note_state(array, result);
    }
    if (result != 0) {
        array->own = OWN_IDLE;
        /* The state may be in storage, although the flush has failed. */
        array->is_touched = array->is_touched && !array->stored.is_clean;
        array->config.synced(array->config.ctx, false);
        return;
    }
    switch (own) {
    case OWN_RECORDS:
        for (uint32_t i = 0; i < array->sync_count; i++) {
            array->blocks[array->sync_first + i].flags &=
                (uint8_t)~NAND_BLOCK_DIRTY;
        }
        sync_records(array);
        break;
    case OWN_SYNC_STATE:
        array->own = OWN_FLUSH;
        backend->flush(backend->ctx, array->config.num_ops * NAND_IO_PER_OP);
        break;
    default:
        ASSERT(own == OWN_FLUSH);
        array->own = OWN_IDLE;
        array->is_touched = false;
        array->config.synced(array->config.ctx, true);
        break;
    }
}

void nand_array_io_done(struct nand_array *array, uint32_t id, int result)
{
    struct nand_op *op;

    if (id == array->config.num_ops * NAND_IO_PER_OP) {
        own_done(array, result);
        return;
    }
    op = nand_op_at(array, id / NAND_IO_PER_OP);
    ASSERT(op->work.is_used && op->work.pending != 0);
    op->work.pending--;
    if (result != 0) {
        op->storage_errno = -result;
    }
    if (op->work.pending == 0) {
        nand_op_continue(array, op);
    }
}
