/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Words of DRAM that are lost on the way to the flash.
 * Reference: docs/decisions/0017-data-path.md
 *
 * If a word in the write buffer is lost, the block that contains it gets the
 * same mark as from Write Uncorrectable: the unit is programmed with the mark,
 * and reads of the block fail until a host writes it.  A unit that garbage
 * collection moves is read again, because the flash still has it.  If a word
 * is lost while a unit is being rebuilt from parity, the other dies are read
 * again.  If a word of the parity sum of an open stripe is lost, its unit is
 * never rebuilt from this sum.
 */
#include "storage/ftl/map/ftl_keep.h"
#include "storage/ftl/map/ftl_memory.h"
#include "storage/ftl/ops/ops.h"
#include "storage/ftl/rows/rows.h"
#include "storage/ftl/space/ftl_findings.h"
#include "storage/ftl/space/space.h"

enum { ALL_BLOCKS = 0xff, WORD = 8, PI_LEN = 8 };

/* Whether a word is in `len` bytes at `memory`, and at which offset. */
static bool find_offset(const uint8_t *memory, size_t len, const uint8_t *word,
                        size_t *offset)
{
    *offset = (uintptr_t)word - (uintptr_t)memory;
    return *offset < len;
}

/* Record that a unit of a row is lost.  If the row was not sent yet, it is not
 * sent.  If it was sent and fails, its unit cannot be removed from the stripe's
 * sum, and ftl_parity_spoil_sum() is needed. */
static void note_row(struct ftl_rows_floor *ftl, uint16_t slot)
{
    for (uint32_t i = 0; i < ftl->config.num_requests; i++) {
        struct ftl_request *request = &ftl->ops.requests[i];

        if (request->kind != FTL_REQUEST_ROW) {
            continue;
        }
        for (uint32_t unit = 0; unit < request->flash.num_units; unit++) {
            if (request->slots[unit] == slot) {
                request->lost_units |= UINT64_C(1) << unit;
            }
        }
    }
}

/* Whether a slot holds a page with trims, health or wear that is being moved.
 */
static bool is_moved_page(const struct ftl_rows_floor *ftl,
                          const struct ftl_slot *slot)
{
    return slot->pool == FTL_POOL_MOVE &&
           (slot->state == FTL_SLOT_WAITING ||
            slot->state == FTL_SLOT_PROGRAMMING) &&
           slot->number >= ftl->config.logical_units;
}

/* Blocks in a buffer are lost. */
static void lose_blocks(struct ftl_rows_floor *ftl, uint16_t buffer,
                        uint8_t marks)
{
    ftl_keep_note_lost(&ftl->map_floor, buffer, marks);
    for (uint16_t i = 0; i < ftl->buffer.num_slots; i++) {
        struct ftl_slot *slot = &ftl->buffer.slots[i];

        if (slot->buffer != buffer) {
            continue;
        }
        if (slot->pool == FTL_POOL_MOVE &&
            !ftl_mount_is_settling(&ftl->space_floor)) {
            slot->must_be_read = true;
        } else if (is_moved_page(ftl, slot)) {
            /* A mark would not make the page unreadable.  Begin the mount
             * again, so that it reads the page from the flash. */
            ftl->mount.is_in_vain = true;
        } else if (slot->pool != FTL_POOL_TRIM) {
            /* Slots of trim pages need no mark, because the contents of such a
             * page are copied from the table whenever it is programmed. */
            slot->marks |= marks;
            ftl->has_marks = true;
        }
        if (slot->state == FTL_SLOT_PROGRAMMING) {
            note_row(ftl, i);
        }
    }
}

/* The row with the parity of a sum may have been sent, and the controller has
 * not taken its data yet.  Spoil its unit, too. */
static void spoil_sent_parity(struct ftl_rows_floor *ftl,
                              const struct ftl_accumulator *sum, uint32_t index)
{
    for (uint32_t i = 0; i < ftl->config.num_requests; i++) {
        struct ftl_request *request = &ftl->ops.requests[i];

        if ((request->kind != FTL_REQUEST_ROW &&
             request->kind != FTL_REQUEST_CHECKPOINT) ||
            ftl_parity_find(ftl, request->row) != sum) {
            continue;
        }
        for (uint32_t unit = 0; unit < request->flash.num_units; unit++) {
            uint8_t plane = request->units[unit].plane;

            if ((request->parity_planes & BIT(plane)) != 0 &&
                ftl_layout_index(&ftl->layout, &request->units[unit]) ==
                    index) {
                ftl_system_spoil(request->system[unit]);
                ftl_system_mark_parity(request->system[unit]);
            }
        }
    }
}

/* @return whether the word is in the sum of a stripe */
static bool lose_sum(struct ftl_rows_floor *ftl, const uint8_t *word)
{
    size_t units = ftl->layout.row_units;
    size_t offset;

    for (unsigned int i = 0; i < FTL_ACCUMULATORS; i++) {
        struct ftl_accumulator *sum = &ftl->parity.accumulators[i];

        if (!sum->is_used) {
            continue;
        }
        if (find_offset(sum->data, units * FTL_UNIT_DATA, word, &offset)) {
            offset /= FTL_UNIT_DATA;
        } else if (find_offset(sum->meta, units * FTL_UNIT_META, word,
                               &offset)) {
            offset /= FTL_UNIT_META;
        } else {
            continue;
        }
        if ((sum->spoilt & UINT64_C(1) << offset) == 0) {
            spoil_sent_parity(ftl, sum, (uint32_t)offset);
        }
        ftl_parity_spoil_unit(sum, (uint32_t)offset);
        /* The stripe will have no parity in this place. */
        ftl_due_move_soon(&ftl->space_floor,
                          sum->stripe / ftl->layout.geometry.wordlines,
                          FTL_CAUSE_REBUILD);
        return true;
    }
    return false;
}

static bool lose_word(struct ftl_rows_floor *ftl, const uint8_t *word)
{
    size_t buffers = (size_t)ftl->buffer.num_slots + 1;
    size_t offset;

    if (find_offset(ftl->buffer.data, buffers * FTL_UNIT_DATA, word, &offset)) {
        lose_blocks(ftl, (uint16_t)(offset / FTL_UNIT_DATA),
                    (uint8_t)BIT(offset % FTL_UNIT_DATA >> FTL_SECTOR_SHIFT));
        return true;
    }
    if (find_offset(ftl->buffer.meta, buffers * FTL_UNIT_META, word, &offset)) {
        lose_blocks(ftl, (uint16_t)(offset / FTL_UNIT_META), ALL_BLOCKS);
        return true;
    }
    return lose_sum(ftl, word);
}

/* ---- Units that are being rebuilt. */

/* Whether a word is in the memory of a rescue: in its sum, or in the units that
 * it has read. */
static bool is_in_rescue(const struct ftl_rows_floor *ftl,
                         const struct ftl_rescue *rescue, const uint8_t *word)
{
    size_t data = (size_t)ftl->layout.row_units * FTL_UNIT_DATA;
    size_t meta = (size_t)ftl->layout.row_units * FTL_UNIT_META;
    size_t offset;

    return find_offset(rescue->data, data, word, &offset) ||
           find_offset(rescue->meta, meta, word, &offset) ||
           find_offset(rescue->read_data, data, word, &offset) ||
           find_offset(rescue->read_meta, meta, word, &offset);
}

/* If a word is in the memory of a rescue, make this rescue begin again.
 * @return whether it is */
static bool repeat_rescue(struct ftl_rows_floor *ftl, const uint8_t *word)
{
    for (unsigned int i = 0; i < FTL_RESCUES; i++) {
        struct ftl_rescue *rescue = &ftl->parity.rescues[i];

        if (is_in_rescue(ftl, rescue, word)) {
            rescue->has_lost_word = true;
            return true;
        }
    }
    return false;
}

/* ---- Moves that are in the list when the controller stops. */

static uint32_t move_bytes(const struct ftl_move *move)
{
    return move->kind == FTL_MOVE_PROTECT ? PI_LEN : move->length;
}

static bool is_copy(const struct ftl_move *move)
{
    return move->kind != FTL_MOVE_XOR && move->target != 0;
}

/* Whether a word overlaps the `len` bytes at `memory`, which need not be
 * aligned. */
static bool has_part_of(uint64_t memory, uint64_t len, uint64_t word)
{
    return memory < word + WORD && word < memory + len;
}

/* A move would copy the lost word at `addr`.  So the words to which it would
 * copy these bytes are lost, too. */
static void lose_target(struct ftl_rows_floor *ftl, const struct ftl_move *move,
                        uint64_t addr)
{
    uint64_t first = MAX(addr, move->source);
    uint64_t last = MIN(addr + WORD, move->source + move_bytes(move)) - 1;
    uint64_t change =
        move->target - move->source - ftl->config.flash.moves->addr_offset;

    (void)lose_word(ftl, (const uint8_t *)(uintptr_t)(first + change));
    (void)lose_word(ftl, (const uint8_t *)(uintptr_t)(last + change));
}

/* Find the request of a read into whose memory for metadata a word was read.
 * @return NULL if there is none */
static const struct ftl_request *find_reader(const struct ftl_rows_floor *ftl,
                                             const uint8_t *word)
{
    size_t offset;

    for (uint32_t i = 0; i < ftl->config.num_requests; i++) {
        const struct ftl_request *request = &ftl->ops.requests[i];

        if (request->kind == FTL_REQUEST_READ &&
            find_offset(request->meta, sizeof(request->meta), word, &offset)) {
            return request;
        }
    }
    return NULL;
}

/* Find the operation that fails because a move would read a lost word: its
 * protection information would be checked or made with this word, or the word
 * has metadata from the flash for its host.
 * @return NULL if there is none */
static struct ftl_op *find_op(struct ftl_rows_floor *ftl,
                              const struct ftl_move *move, const uint8_t *word)
{
    const struct ftl_request *reader = find_reader(ftl, word);

    if (move->kind >= FTL_MOVE_ADD_GUARD) {
        return &ftl->io.ops[move->op];
    }
    return reader != NULL ? &ftl->io.ops[reader->op] : NULL;
}

/*
 * Mark what pending moves would copy from the lost word, and fail the
 * operations that need this word.
 * @return whether there are such operations
 */
static bool lose_moves(struct ftl_rows_floor *ftl, const uint8_t *word)
{
    const struct ftl_moves *moves = ftl->config.flash.moves;
    uint64_t addr = (uintptr_t)word + moves->addr_offset;
    bool any = false;

    for (uint32_t i = 0; i < moves->count; i++) {
        const struct ftl_move *move = &moves->list[i];
        struct ftl_op *op;

        /* The units of a row are in slots, which lose_word() knows.  A word
         * that is added to a sum is zero by then. */
        if (move->source == 0 || move->kind == FTL_MOVE_ADD_ROW ||
            !has_part_of(move->source, move_bytes(move), addr)) {
            continue;
        }
        if (is_copy(move)) {
            lose_target(ftl, move, addr);
        }
        (void)repeat_rescue(
            ftl,
            (const uint8_t *)(uintptr_t)(move->target - moves->addr_offset));
        op = find_op(ftl, move, word);
        if (op != NULL) {
            op->status = MEDIA_TRANSFER_ERROR;
            any = true;
        }
    }
    return any;
}

static bool has_piece_with(const struct media_io *io, const uint8_t *word)
{
    for (unsigned int i = 0; i < io->piece_count; i++) {
        if (has_part_of((uintptr_t)io->pieces[i].ptr, io->pieces[i].len_bytes,
                        (uintptr_t)word)) {
            return true;
        }
    }
    return false;
}

/* Writes whose data contains the word end with an error.
 * @return whether there are such writes */
static bool fail_writes(struct ftl_rows_floor *ftl, const uint8_t *word)
{
    bool any = false;

    for (uint32_t i = 0; i < ftl->config.num_ops; i++) {
        struct ftl_op *op = &ftl->io.ops[i];

        if ((op->state == FTL_OP_QUEUED || op->state == FTL_OP_FILLING) &&
            op->io.op == MEDIA_WRITE && has_piece_with(&op->io, word)) {
            op->status = MEDIA_TRANSFER_ERROR;
            any = true;
        }
    }
    return any;
}

bool ftl_damage_note_lost(struct ftl_rows_floor *ftl, const uint8_t *word)
{
    bool is_ours;

    if (repeat_rescue(ftl, word)) {
        return true;
    }
    is_ours = lose_word(ftl, word);
    is_ours |= lose_moves(ftl, word);
    is_ours |= fail_writes(ftl, word);
    return is_ours;
}

/* Whether a buffer holds the only copy of contents, and these wait for their
 * row, so that nothing programs them at this moment. */
static bool is_waiting(const struct ftl_rows_floor *ftl, uint16_t buffer)
{
    for (uint16_t i = 0; i < ftl->buffer.num_slots; i++) {
        const struct ftl_slot *slot = &ftl->buffer.slots[i];

        if (slot->buffer == buffer) {
            return slot->state == FTL_SLOT_WAITING &&
                   slot->pool == FTL_POOL_HOST;
        }
    }
    return false;
}

bool ftl_damage_note_patrolled(struct ftl_rows_floor *ftl, const uint8_t *word)
{
    size_t buffers = (size_t)ftl->buffer.num_slots + 1;
    size_t offset;

    return ftl->state == FTL_READY && !ftl_memory_is_pending(&ftl->map_floor) &&
           find_offset(ftl->buffer.data, buffers * FTL_UNIT_DATA, word,
                       &offset) &&
           is_waiting(ftl, (uint16_t)(offset / FTL_UNIT_DATA)) &&
           lose_word(ftl, word);
}

/* ---- Which units are in a sum. */

bool ftl_rescue_is_plane_doubtful(const struct ftl_rows_floor *ftl,
                                  const struct ftl_rescue *rescue, uint32_t die,
                                  uint32_t plane)
{
    uint32_t block = rescue->flash.block;
    uint8_t known =
        ftl_good_planes(&ftl->space_floor, block, die) |
        ftl->factory_planes[block * ftl->layout.geometry.dies + die];

    return (known & BIT(plane)) == 0;
}

/* How many units of other dies may or may not be in the sum of a unit.  What is
 * bad or dead is counted now: more may be than when the attempt has begun. */
static uint32_t count_doubtful(const struct ftl_rows_floor *ftl,
                               const struct ftl_rescue *rescue, uint32_t unit)
{
    uint32_t plane = rescue->saved[rescue->entry[unit]].plane;
    uint32_t own = rescue->row % ftl->layout.geometry.dies;
    uint32_t count = 0;

    for (uint32_t die = 0; die < ftl->layout.geometry.dies; die++) {
        if (die != own &&
            ftl_rescue_is_plane_doubtful(ftl, rescue, die, plane)) {
            count++;
        }
    }
    return count;
}

/* Whether one of these is of a dead die. */
static bool has_dead_die(const struct ftl_rows_floor *ftl,
                         const struct ftl_rescue *rescue, uint32_t unit)
{
    uint32_t plane = rescue->saved[rescue->entry[unit]].plane;
    uint32_t own = rescue->row % ftl->layout.geometry.dies;

    for (uint32_t die = 0; die < ftl->layout.geometry.dies; die++) {
        if (die != own && ftl->dies.is_dead[die] &&
            ftl_rescue_is_plane_doubtful(ftl, rescue, die, plane)) {
            return true;
        }
    }
    return rescue->has_dead;
}

bool ftl_rescue_needs_row_number(const struct ftl_rows_floor *ftl,
                                 const struct ftl_rescue *rescue)
{
    uint32_t own = rescue->row % ftl->layout.geometry.dies;

    if (ftl->state == FTL_MOUNTING || rescue->is_of_accumulator ||
        rescue->row_number != 0 || ftl->dies.is_dead[own]) {
        return false;
    }
    for (uint32_t i = 0; i < rescue->num_units; i++) {
        if (count_doubtful(ftl, rescue, i) > 1) {
            return true;
        }
    }
    return false;
}

/* Whether all of these were read, and no two have the same number. */
static bool are_different(const struct ftl_rescue *rescue, uint32_t unit,
                          uint32_t count)
{
    for (uint32_t i = 0; i < rescue->num_found[unit]; i++) {
        for (uint32_t j = 0; j < i; j++) {
            if (rescue->found[unit][i] == rescue->found[unit][j]) {
                return false;
            }
        }
    }
    return rescue->num_found[unit] == count;
}

/*
 * Whether a sum may be wrong although its number looks right.  If two units
 * that have the same number are left out of the sum, or are taken for a part of
 * it, both by mistake, the numbers cancel each other.  The numbers of their
 * rows do not, so the sum is right if its row number is that of the rest of the
 * row.  (Those of four rows may.  Then five units of a stripe are lost, and
 * more than three planes of it have failed; beside a dead die, nothing is
 * rebuilt then.)  If nothing of the row can be read, the sum counts if the
 * units in question are known to have different numbers.
 *
 * A mount knows row numbers of its own (ftl_mount_expects_row()) and asks only
 * if a die is dead.
 */
static bool is_doubtful(const struct ftl_rows_floor *ftl,
                        const struct ftl_rescue *rescue, uint32_t unit,
                        const struct ftl_system *system)
{
    uint32_t count = count_doubtful(ftl, rescue, unit);

    if (count <= 1u + rescue->num_absent[unit]) {
        return false;
    }
    if (ftl->state == FTL_MOUNTING) {
        return has_dead_die(ftl, rescue, unit);
    }
    count -= rescue->num_absent[unit];
    if (count > FTL_RESCUE_FOUND && has_dead_die(ftl, rescue, unit)) {
        return true;
    }
    return rescue->row_number != 0 ? system->row != rescue->row_number
                                   : !are_different(rescue, unit, count);
}

bool ftl_rescue_has_right_members(const struct ftl_rows_floor *ftl,
                                  const struct ftl_rescue *rescue,
                                  uint32_t unit,
                                  const struct ftl_system *system)
{
    uint32_t plane = rescue->saved[rescue->entry[unit]].plane;
    uint32_t own = rescue->row % ftl->layout.geometry.dies;

    /* A unit of a row that was not programmed yet is not in the sum, so it
     * cannot be rebuilt. */
    return rescue->is_of_accumulator
               ? (rescue->members[own] & BIT(plane)) != 0
               : rescue->parity[unit] == 1 &&
                     !is_doubtful(ftl, rescue, unit, system);
}
