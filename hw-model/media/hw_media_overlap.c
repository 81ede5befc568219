/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Commands for the same blocks.  The host's threads may carry out requests to
 * the medium at the same time, and QEMU may do a read at once while a thread
 * writes.  Such a read could return a half written block, and NVMe wants no
 * block to be torn (AWUN).  Therefore a read waits for each earlier write of
 * its blocks, and a write for each earlier read: also one that goes to the
 * cache, because it may be destaged soon.
 *
 * For the same reason a write waits for each earlier write.  Otherwise one past
 * the cache and a destaged one could be at the medium together, and end in
 * another order than their data got there: the cache would show the one, and
 * the medium the other as soon as the cache has let go.
 *
 * A write holds up others until its data are at the medium or in the cache; a
 * flush after that, for FUA, holds up nobody.
 *
 * A command waits for earlier ones only, and for nothing else meanwhile, so all
 * of them end.  Commands that wait count as earlier ones, too, so that none
 * waits for ever.
 */
#include "hw-model/media/hw_media_internal.h"

static struct hw_media_ranges *ranges_of(struct hw_media *media, bool is_read)
{
    return is_read ? &media->read_ranges : &media->write_ranges;
}

static bool is_read(const struct hw_media_op *op)
{
    return op->opcode == MEDIA_CMD_READ;
}

static bool overlaps_earlier(const struct hw_media_ranges *ranges,
                             const struct hw_media_range *own)
{
    for (uint32_t i = 0; i < ranges->count; i++) {
        const struct hw_media_range *range = &ranges->range[i];

        if (range->first < own->end && own->first < range->end &&
            range->serial < own->serial) {
            return true;
        }
    }
    return false;
}

static bool must_wait(struct hw_media *media, const struct hw_media_op *op)
{
    const struct hw_media_range *own =
        &ranges_of(media, is_read(op))->range[op->range];

    return overlaps_earlier(&media->write_ranges, own) ||
           (!is_read(op) && overlaps_earlier(&media->read_ranges, own));
}

void media_overlap_begin(struct hw_media *media, struct hw_media_op *op)
{
    struct hw_media_ranges *own = ranges_of(media, is_read(op));

    if (op->first == op->end) {
        media_op_begin(media, op);
        return;
    }
    op->range = own->count;
    op->has_range = true;
    own->range[own->count++] = (struct hw_media_range){
        .first = op->first,
        .end = op->end,
        .serial = media->next_serial++,
        .op = media_op_index(media, op),
    };
    if (must_wait(media, op)) {
        media_list_put(media, &media->overlap_waiters, op);
        return;
    }
    media_op_begin(media, op);
}

void media_overlap_end(struct hw_media *media, struct hw_media_op *op)
{
    struct hw_media_ranges *own = ranges_of(media, is_read(op));

    if (!op->has_range) {
        return;
    }
    op->has_range = false;
    own->range[op->range] = own->range[--own->count];
    media->ops[own->range[op->range].op].range = op->range;
    media->overlap_ended = !media_list_is_empty(&media->overlap_waiters);
}

void media_overlap_wake(struct hw_media *media)
{
    while (media->overlap_ended) {
        struct hw_media_list waiters = media->overlap_waiters;
        struct hw_media_op *op;

        media->overlap_ended = false;
        media_list_init(&media->overlap_waiters);
        while ((op = media_list_take(media, &waiters)) != NULL) {
            if (must_wait(media, op)) {
                media_list_put(media, &media->overlap_waiters, op);
            } else {
                media_op_begin(media, op);
            }
        }
        if (media->is_stopped || media->is_resetting) {
            media_destage_again(media); /* for those that now wait for room */
        }
        media_destage_pump(media);
    }
}
