/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Garbage collection: the valid units of one superblock at a time, the victim,
 * are copied into the superblock of another stream.  Then the victim is erased.
 *
 * A policy chooses the victim among the closed superblocks (ftl_policies.h).
 * The victim is erased when none of its units is valid and all its copies are
 * programmed, and when the trims that have made units of it invalid are
 * durable: otherwise an even older version could come back after a power cut.
 *
 * A superblock with a valid unit that cannot be read is stuck.  It is tried
 * again a few times, each time after another superblock was moved, because a
 * fault that makes all reads fail must not count.  If the unit still cannot be
 * read, it is given up: see ftl_move.c.
 */
#include "storage/ftl/background/background.h"
#include "storage/ftl/map/ftl_trace_units.h"
#include "storage/ftl/map/map.h"
#include "storage/ftl/ops/ops.h"
#include "storage/ftl/space/ftl_findings.h"
#include "storage/ftl/space/space.h"

/* How often a stuck superblock is tried again because space is needed. */
enum { SPACE_RETRIES_MAX = 4 };

/* How often a mount copies the originals once more because a program has failed
 * beside their copies. */
enum { COPIES_AGAIN_MAX = 4 };

/*
 * Whether a superblock may be chosen.  Its last rows may still be in flight
 * when it is closed.  Their units are not valid yet, and they would be
 * programmed into blocks that are about to be erased.
 */
static bool is_candidate(const struct ftl_background_floor *ftl,
                         uint32_t superblock)
{
    const struct ftl_superblock *at = &ftl->superblocks[superblock];

    return at->state == FTL_SUPERBLOCK_CLOSED && at->rows_in_flight == 0 &&
           (!at->is_stuck || at->valid < at->stuck_valid ||
            (at->stuck_moved != ftl->collection.moved &&
             ftl->state == FTL_READY));
}

/* Whether the mount is to erase a superblock in this phase. */
static bool is_due(const struct ftl_superblock *superblock,
                   enum ftl_mount_phase phase)
{
    return superblock->is_suspect && !superblock->is_stuck &&
           (phase != FTL_MOUNT_DROP ||
            (superblock->valid == 0 && !superblock->has_normal_row));
}

bool ftl_collect_is_due(const struct ftl_background_floor *ftl)
{
    for (uint32_t i = 0; i < ftl->layout.superblocks; i++) {
        if (is_due(&ftl->superblocks[i],
                   (enum ftl_mount_phase)ftl->mount.phase)) {
            return true;
        }
    }
    return false;
}

/* Whether moving its units and then erasing it gives enough space. */
static bool is_worthwhile(const struct ftl_background_floor *ftl,
                          uint32_t superblock)
{
    const struct ftl_superblock *at = &ftl->superblocks[superblock];
    uint32_t row = at->capacity / ftl->layout.superblock_rows;

    return at->valid + FTL_RESERVE_ROWS * row <= at->capacity;
}

static struct ftl_victim describe_victim(const struct ftl_background_floor *ftl,
                                         uint32_t superblock)
{
    const struct ftl_superblock *at = &ftl->superblocks[superblock];

    return (struct ftl_victim){
        .valid = at->valid,
        .capacity = at->capacity,
        .age = ftl->next_row_number - at->last_row + 1,
    };
}

/* Whether one superblock is a better victim than another one.  During the
 * mount, and among superblocks of which one is empty, the emptier one is. */
static bool is_better_victim(const struct ftl_background_floor *ftl,
                             uint32_t one, uint32_t other)
{
    const struct ftl_victim a = describe_victim(ftl, one);
    const struct ftl_victim b = describe_victim(ftl, other);

    if (ftl->state == FTL_MOUNTING || a.valid == 0 || b.valid == 0) {
        return a.valid < b.valid;
    }
    return ftl->victims->is_better(&a, &b);
}

/* @return FTL_NOWHERE when none would give any space */
static uint32_t choose_victim(const struct ftl_background_floor *ftl)
{
    bool is_mounting = ftl->state == FTL_MOUNTING;
    uint32_t best = FTL_NOWHERE;

    for (uint32_t i = 0; i < ftl->layout.superblocks; i++) {
        if (is_candidate(ftl, i) &&
            (is_mounting ? is_due(&ftl->superblocks[i],
                                  (enum ftl_mount_phase)ftl->mount.phase)
                         : is_worthwhile(ftl, i)) &&
            (best == FTL_NOWHERE || is_better_victim(ftl, i, best))) {
            best = i;
        }
    }
    return best;
}

void ftl_collect_rest_of_suspects(struct ftl_background_floor *ftl)
{
    for (uint32_t i = 0; i < ftl->layout.superblocks; i++) {
        if (ftl->superblocks[i].is_suspect) {
            ftl_due_move_soon(&ftl->space_floor, i, FTL_CAUSE_MOUNT);
        }
    }
}

/* @return the emptiest superblock that moves soon, or FTL_NOWHERE */
static uint32_t choose_due_victim(const struct ftl_background_floor *ftl)
{
    uint32_t best = FTL_NOWHERE;

    if (ftl->num_due == 0) {
        return FTL_NOWHERE;
    }
    for (uint32_t i = 0; i < ftl->layout.superblocks; i++) {
        if (ftl->superblocks[i].moves_soon && is_candidate(ftl, i) &&
            (best == FTL_NOWHERE ||
             ftl->superblocks[i].valid < ftl->superblocks[best].valid)) {
            best = i;
        }
    }
    return best;
}

/*
 * Whether a superblock may be erased although no space is needed.  Those that
 * may hold the cause of an error are erased only for space: a fault that
 * makes programs fail again and again must not wear blocks out.
 */
static bool is_empty(const struct ftl_background_floor *ftl,
                     uint32_t superblock)
{
    const struct ftl_superblock *at = &ftl->superblocks[superblock];

    return at->valid == 0 && is_candidate(ftl, superblock) &&
           !at->is_given_up && !at->is_suspect && !at->is_stuck &&
           ftl_victim_has_durable_trims(&ftl->map_floor, superblock);
}

/*
 * Superblocks that have nothing valid, but have to wait, are looked at again
 * when trims become durable, and when another one is opened.
 * @return an empty superblock, or FTL_NOWHERE
 */
static uint32_t choose_empty_victim(struct ftl_background_floor *ftl)
{
    if (!ftl->config.erases_early || !ftl->has_emptied) {
        return FTL_NOWHERE;
    }
    for (uint32_t i = 0; i < ftl->layout.superblocks; i++) {
        if (is_empty(ftl, i)) {
            return i;
        }
    }
    ftl->has_emptied = false;
    return FTL_NOWHERE;
}

/*
 * The next victim while operations are served.  Superblocks that move soon
 * take turns with those that give space, because moving a full one gives
 * none.
 */
static uint32_t choose_next_victim(struct ftl_background_floor *ftl)
{
    bool needs_space =
        ftl->free_superblocks < FTL_COLLECT_BELOW + ftl->more_free;
    uint32_t victim = FTL_NOWHERE;

    if (!needs_space) {
        ftl->is_full = false;
        victim = choose_empty_victim(ftl);
    } else if (!ftl->collection.is_due_next) {
        victim = choose_victim(ftl);
    }
    if (victim == FTL_NOWHERE &&
        ftl->free_superblocks > FTL_URGENT_LEAVES_FREE) {
        victim = choose_due_victim(ftl);
    }
    if (victim == FTL_NOWHERE && needs_space) {
        victim = choose_victim(ftl);
    }
    ftl->collection.is_due_next = !ftl->collection.is_due_next;
    return victim;
}

/* Why a victim is moved.  If it moves soon, this is the reason, even if it was
 * chosen because space is needed. */
static enum ftl_cause victim_cause(const struct ftl_background_floor *ftl,
                                   uint32_t victim)
{
    const struct ftl_superblock *at = &ftl->superblocks[victim];

    if (ftl->state != FTL_READY) {
        return FTL_CAUSE_MOUNT;
    }
    return at->moves_soon ? (enum ftl_cause)at->cause : FTL_CAUSE_COLLECT;
}

bool ftl_collect_has_victim(const struct ftl_background_floor *ftl)
{
    return ftl->collection.victim != FTL_NOWHERE ||
           choose_victim(ftl) != FTL_NOWHERE;
}

bool ftl_collect_retry(struct ftl_background_floor *ftl)
{
    bool any = false;

    for (uint32_t i = 0; i < ftl->layout.superblocks; i++) {
        struct ftl_superblock *at = &ftl->superblocks[i];

        if (at->is_stuck && at->space_retries < SPACE_RETRIES_MAX) {
            at->space_retries++;
            at->stuck_valid = at->valid + 1;
            any = true;
        }
    }
    return any;
}

/*
 * Whether the copies of the victim may lack parity that is about to be
 * programmed.  Before the originals are erased, this stripe is completed.
 * Otherwise contents that a parity has protected for years would depend on
 * every die if the power is cut now.  Without space for the padding, the
 * originals are erased nevertheless.
 */
static bool needs_stripe(const struct ftl_background_floor *ftl)
{
    const struct ftl_stream *stream = &ftl->streams[FTL_MOVED_STREAM];

    return ftl->state == FTL_MOUNTING && ftl->mount.phase == FTL_MOUNT_CLEAR &&
           stream->superblock != FTL_NOWHERE &&
           (stream->rows_in_flight != 0 ||
            (stream->accumulator != NULL &&
             stream->next_row != ftl->layout.superblock_rows &&
             ftl->free_superblocks > FTL_MOVE_LEAVES_FREE));
}

/* Complete the stripe. @return whether anything was done */
static bool complete_stripe(struct ftl_background_floor *ftl)
{
    struct ftl_stream *stream = &ftl->streams[FTL_MOVED_STREAM];
    bool any = stream->accumulator != NULL && !stream->completes_stripe;

    stream->completes_stripe |= any;
    return any;
}

/*
 * Whether a program has failed where the mount has put its copies, so that some
 * stripe of them may have no parity.  Then the mount begins again and copies
 * the originals once more before it erases any of them: otherwise a die that
 * dies next would take the only copy of contents that parity has protected so
 * far, and older contents would count.  The originals are erased nevertheless
 * without space for other copies and a superblock to spare, and when this was
 * done a few times: the next program might fail, too.
 */
static bool must_copy_again(const struct ftl_background_floor *ftl)
{
    uint32_t own = 0;
    bool has_failed = false;

    if (ftl->state != FTL_MOUNTING || ftl->mount.phase != FTL_MOUNT_CLEAR ||
        !ftl_makes_parity(&ftl->ops_floor)) {
        return false;
    }
    for (uint32_t i = 0; i < ftl->layout.superblocks; i++) {
        own += ftl->superblocks[i].is_own;
        has_failed |=
            ftl->superblocks[i].is_own && ftl->superblocks[i].has_failed_row;
    }
    return has_failed && ftl->free_superblocks > own &&
           ftl->mount.copied_again < COPIES_AGAIN_MAX;
}

/* The victim has been read to its end. */
static bool finish_victim(struct ftl_background_floor *ftl)
{
    struct ftl_collection *collection = &ftl->collection;
    struct ftl_superblock *victim = &ftl->superblocks[collection->victim];

    if (collection->slots != 0) {
        return false;
    }
    if (victim->state == FTL_SUPERBLOCK_CLOSED) {
        if (victim->is_stuck) {
            if (victim->stuck_moved != collection->moved) {
                victim->retries =
                    (uint8_t)MIN(victim->retries + 1, (int)FTL_STUCK_RETRIES);
            }
            victim->stuck_moved = collection->moved;
            victim->stuck_valid = victim->valid;
            collection->victim = FTL_NOWHERE;
            return true;
        }
        if (victim->valid != 0) {
            /* Some could not be moved: their row has failed. */
            collection->next_row = 0;
            return true;
        }
        if (!ftl_victim_has_durable_trims(&ftl->map_floor,
                                          collection->victim) ||
            ftl_request_reads_from(&ftl->ops, collection->victim)) {
            return false;
        }
        if (needs_stripe(ftl)) {
            return complete_stripe(ftl);
        }
        if (must_copy_again(ftl)) {
            ftl->mount.copied_again++;
            ftl->mount.is_in_vain = true;
            return true;
        }
        ftl_superblock_erase(&ftl->space_floor, collection->victim,
                             (enum ftl_cause)collection->cause);
    }
    if (!ftl_superblock_erase_step(&ftl->space_floor, collection->victim)) {
        return false;
    }
    collection->victim = FTL_NOWHERE;
    collection->moved += collection->has_read;
    collection->has_read = false;
    ftl->is_full = false;
    return true;
}

/* Find the next row that may be torn. @return false when there is none, or it
 * is not found yet */
static bool find_suspect_row(struct ftl_background_floor *ftl)
{
    struct ftl_collection *collection = &ftl->collection;
    const uint64_t *numbers = ftl->mount.row_numbers;

    for (; collection->victim < ftl->layout.superblocks;
         collection->victim++, collection->next_row = 0) {
        uint32_t first = collection->victim * ftl->layout.superblock_rows;

        while (ftl->superblocks[collection->victim].is_suspect &&
               collection->next_row < ftl->layout.superblock_rows) {
            if (!ftl_mount_take(&ftl->mount, 1)) {
                return false;
            }
            if (numbers[first + collection->next_row] > ftl->mount.settle_row) {
                return true;
            }
            collection->next_row++;
        }
    }
    return false;
}

bool ftl_collect_settle(struct ftl_background_floor *ftl, bool *is_done)
{
    struct ftl_collection *collection = &ftl->collection;
    bool any = false;

    *is_done = false;
    if (collection->victim == FTL_NOWHERE) {
        collection->victim = 0;
        collection->next_row = 0;
        collection->cause = FTL_CAUSE_MOUNT;
    }
    while (find_suspect_row(ftl)) {
        if (!ftl_collect_read_row(ftl)) {
            return any;
        }
        any = true;
    }
    if (collection->victim < ftl->layout.superblocks) {
        return true;
    }
    collection->next_row = ftl->layout.superblock_rows;
    if (collection->reads == 0 && collection->slots == 0) {
        collection->victim = FTL_NOWHERE;
        *is_done = true;
        any = true;
    }
    return any;
}

void ftl_collect_stop(struct ftl_background_floor *ftl)
{
    uint16_t index;

    while ((index = ftl_list_pop(&ftl->buffer.waiting[FTL_POOL_MOVE])) !=
               FTL_LIST_END ||
           (index = ftl_list_pop(&ftl->collection.lost)) != FTL_LIST_END) {
        ftl_slot_free(&ftl->buffer, index);
    }
    ftl->collection = (struct ftl_collection){
        .victim = FTL_NOWHERE,
        .cause = FTL_CAUSE_COLLECT,
        .moved = ftl->collection.moved,
    };
    ftl->has_emptied = true;
    ftl_list_init(&ftl->collection.lost, ftl->buffer.wait_links);
}

/* Whether the units of the victim that have been read, or the trims for which
 * it waits, cannot be programmed because no superblock is free for them. */
static bool victim_waits_for_space(const struct ftl_background_floor *ftl)
{
    uint32_t stream = ftl_victim_stream(&ftl->map_floor);

    return (ftl->buffer.waiting[FTL_POOL_MOVE].count != 0 ||
            ftl_victim_waits_for_trims(&ftl->map_floor)) &&
           ftl->streams[stream].superblock == FTL_NOWHERE &&
           ftl->free_superblocks <= FTL_MOVE_LEAVES_FREE;
}

/* @return a superblock that can be erased at once for space, or FTL_NOWHERE */
static uint32_t find_empty(const struct ftl_background_floor *ftl)
{
    for (uint32_t i = 0; i < ftl->layout.superblocks; i++) {
        if (ftl->superblocks[i].valid == 0 && is_candidate(ftl, i) &&
            ftl_victim_has_durable_trims(&ftl->map_floor, i)) {
            return i;
        }
    }
    return FTL_NOWHERE;
}

/*
 * Stop moving the victim for good, because the medium is read-only, or for now,
 * because programs that have failed have left empty superblocks, and there is
 * no other space to which its units can be moved.
 * @return whether it has stopped
 */
static bool give_up_victim(struct ftl_background_floor *ftl)
{
    struct ftl_collection *collection = &ftl->collection;
    uint32_t empty = FTL_NOWHERE;

    if (ftl->state != FTL_READY || collection->victim == FTL_NOWHERE ||
        collection->reads != 0 ||
        collection->slots != ftl->buffer.waiting[FTL_POOL_MOVE].count ||
        ftl->superblocks[collection->victim].state != FTL_SUPERBLOCK_CLOSED) {
        return false;
    }
    if (!ftl->is_read_only && victim_waits_for_space(ftl)) {
        empty = find_empty(ftl);
    }
    if (!ftl->is_read_only && empty == FTL_NOWHERE) {
        return false;
    }
    ftl->superblocks[collection->victim].is_stuck = false;
    ftl_collect_stop(ftl);
    collection->victim = empty;
    collection->next_row = ftl->layout.superblock_rows;
    return true;
}

bool ftl_collect_step(struct ftl_background_floor *ftl)
{
    struct ftl_collection *collection = &ftl->collection;
    bool any = give_up_victim(ftl);

    if (collection->victim == FTL_NOWHERE) {
        if (ftl->state == FTL_READY && ftl->is_read_only) {
            return any;
        }
        collection->victim = ftl->state == FTL_READY ? choose_next_victim(ftl)
                                                     : choose_victim(ftl);
        collection->next_row = 0;
        if (collection->victim == FTL_NOWHERE) {
            return false;
        }
        if (ftl->superblocks[collection->victim].valid == 0) {
            collection->next_row = ftl->layout.superblock_rows;
        }
        ftl->superblocks[collection->victim].is_stuck = false;
        collection->cause = (uint8_t)victim_cause(ftl, collection->victim);
        if (ftl_is_traced(&ftl->base_floor)) {
            ftl_trace_victim(&ftl->map_floor);
        }
        collection->has_read = false;
        ftl->is_full = false;
        any = true;
    }
    if (collection->lost.count != 0) {
        return ftl_collect_find_lost(ftl) || any;
    }
    while (collection->next_row < ftl->layout.superblock_rows) {
        if (!ftl_collect_read_row(ftl)) {
            return any;
        }
        any = true;
    }
    return (collection->reads == 0 && finish_victim(ftl)) || any;
}
