/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Destaging: decides when cached lines are written to the medium, and in which
 * requests.
 * Reference: docs/hardware/media.md, section 5.
 */
#include "hw-model/media/hw_media_internal.h"

enum {
    TICK_MS = 20, /* the host is idle if it does not write for one tick */
    /* Dirty data is destaged after BUSY_TICKS even if the host is not idle. */
    BUSY_TICKS = 50,
    RETRY_MS = 1000,       /* pause after a failure */
    HIGH_MARK_DIVISOR = 4, /* destaging starts when 1/4 of the cache is dirty */
    LOW_MARK_DIVISOR = 8,  /* and stops at 1/8 */
};

static void arm_timer(struct hw_media *media, uint64_t ms)
{
    const struct dev_env *env = &media->config.env;

    media->timer_armed = true;
    env->set_timer(env->ctx, env->now_ns(env->ctx) + ms * 1000000);
}

void media_destage_note_write(struct hw_media *media)
{
    media->writes++;
    if (!media->timer_armed) {
        media->writes_at_timer = media->writes;
        media->timer_ticks = 0;
        arm_timer(media, TICK_MS);
    }
}

void hw_media_timer(struct hw_media *media)
{
    media->timer_armed = false;
    if (media->destage_failed) {
        media->destage_failed = false;
        media->is_draining = true;
    } else if (media->cache.used_lines > 0) {
        media->timer_ticks++;
        if (!media->config.keeps_dirty &&
            (media->writes == media->writes_at_timer ||
             media->timer_ticks >= BUSY_TICKS)) {
            media->is_draining = true;
            media->timer_ticks = 0;
        }
        media->writes_at_timer = media->writes;
        arm_timer(media, TICK_MS);
    }
    media_destage_pump(media);
    media_leave(media);
}

/* Whether dirty lines should be destaged now. */
static bool wants_destage(struct hw_media *media)
{
    const struct media_cache *cache = &media->cache;

    if (cache->used_lines == 0) {
        media->is_draining = false;
    }
    if (cache->used_lines > cache->line_count / HIGH_MARK_DIVISOR) {
        media->above_threshold = true;
    } else if (cache->used_lines <= cache->line_count / LOW_MARK_DIVISOR) {
        media->above_threshold = false;
    }
    return !media->destage_failed &&
           (media->is_draining || media->above_threshold ||
            !media_list_is_empty(&media->drain_waiters) ||
            !media_list_is_empty(&media->room_waiters));
}

void media_destage_again(struct hw_media *media)
{
    if (!media_list_is_empty(&media->room_waiters)) {
        media->destage_failed = false;
    }
}

uint32_t media_destage_line(struct hw_media *media, struct media_line *line)
{
    const struct media_backend *backend = &media->config.backend;
    uint32_t id = media->free_batch;
    struct hw_media_batch *batch;
    uint64_t offset;

    if (id == CACHE_NONE) {
        return CACHE_NONE;
    }
    batch = &media->batches[id];
    media->free_batch = batch->next_free;
    media->batches_inflight++;
    batch->num_parts = media_cache_start(&media->cache, line, batch->parts,
                                         HW_MEDIA_BATCH_LINES, &offset);
    for (unsigned int i = 0; i < batch->num_parts; i++) {
        const struct media_cache_part *part = &batch->parts[i];
        size_t first = (size_t)__builtin_ctz(part->mask);
        size_t count = (size_t)__builtin_popcount(part->mask);

        batch->iov[i] = (struct iovec){
            .iov_base = media->cache.data +
                        ((size_t)part->page << CACHE_LINE_SHIFT) +
                        (first << CACHE_SECTOR_SHIFT),
            .iov_len = count << CACHE_SECTOR_SHIFT,
        };
        media_count(media, MEDIA_COUNT_DESTAGED_BLOCKS, count);
    }
    media_count(media, MEDIA_COUNT_DESTAGES, 1);
    media_count(media, MEDIA_COUNT_MEDIUM_WRITES, 1);
    backend->writev(backend->ctx, IO_BATCH0 + id, offset, batch->iov,
                    batch->num_parts);
    return id;
}

void media_destage_pump(struct hw_media *media)
{
    struct media_line *line;

    while (wants_destage(media) && media->free_batch != CACHE_NONE &&
           (line = media_cache_oldest(&media->cache)) != NULL) {
        (void)media_destage_line(media, line);
    }
    /* When the machine stops, flush the medium once the cache is empty. */
    if (media->is_stopped && media->medium_dirty && !media->is_flushing &&
        media->active_ops == 0 && media->batches_inflight == 0 &&
        !media->destage_failed) {
        const struct media_backend *backend = &media->config.backend;

        media->is_flushing = true;
        media->medium_dirty = false;
        media_count(media, MEDIA_COUNT_MEDIUM_FLUSHES, 1);
        backend->flush(backend->ctx, IO_FLUSH);
    }
}

static void note_failure(struct hw_media *media, int result)
{
    struct hw_media_op write = {.opcode = MEDIA_CMD_WRITE};

    media->destage_failed = true;
    media->destage_status = media_status_of(&write, result);
    media_count(media, MEDIA_COUNT_DESTAGE_ERRORS, 1);
    media_irq_raise(media, R_MEDIA_IRQ_STATUS_DESTAGE_FAILED_MASK);
    arm_timer(media, RETRY_MS);
}

void media_destage_done(struct hw_media *media, uint32_t id, int result)
{
    struct hw_media_batch *batch = &media->batches[id];

    for (unsigned int i = 0; i < batch->num_parts; i++) {
        media_cache_finish(&media->cache, &batch->parts[i], result == 0);
    }
    batch->next_free = media->free_batch;
    batch->serial++;
    media->free_batch = id;
    media->batches_inflight--;
    if (result == 0) {
        media->medium_dirty = true;
        media_op_wake(media);
    } else {
        note_failure(media, result);
        media_op_fail_waiters(media, media->destage_status);
    }
    media_destage_pump(media);
}
