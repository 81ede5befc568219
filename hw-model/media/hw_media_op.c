/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Operations of the media engine.  Each carries out one command and passes
 * through these states:
 *
 *       WRITE         FILL [-> SYNC -> FLUSH]        through the cache
 *                     IO [-> FLUSH]                  past the cache
 *       READ          [SYNC -> FLUSH ->] IO
 *       FLUSH         DRAIN -> FLUSH
 *       WRITE_ZEROES, SYNC or DRAIN -> IO [-> FLUSH]
 *       DEALLOCATE
 *
 * The states in brackets apply with FUA or while the cache is off.  A waiting
 * operation is in exactly one list, or has requests counted in `pending`.
 */
#include "hw-model/media/hw_media_internal.h"

#include <errno.h>
#include <string.h>

enum {
    PAST_CACHE_DIVISOR = 4, /* writes larger than 1/4 of the cache bypass it */
    SYNC_LINES_MAX = 1024,  /* a longer SYNC drains the whole cache instead */
    ZERO_SECTORS_MAX = 1 << 21, /* in one request: 1 GiB */
};

static void advance_op(struct hw_media *media, struct hw_media_op *op);

static void fail_op(struct hw_media *media, struct hw_media_op *op,
                    uint8_t status)
{
    op->status = status;
    media_complete(media, op);
}

uint8_t media_status_of(const struct hw_media_op *op, int result)
{
    switch (-result) {
    case 0:
        return MEDIA_CQE_OK;
    case ENOSPC:
        return MEDIA_CQE_NO_SPACE;
    case EROFS:
    case EPERM:
    case EACCES:
        return MEDIA_CQE_READ_ONLY;
    case ECANCELED:
        return MEDIA_CQE_ABORTED;
    default:
        return op->opcode == MEDIA_CMD_READ ? MEDIA_CQE_READ_ERROR
                                            : MEDIA_CQE_WRITE_ERROR;
    }
}

/* ---- The buffer, from the cursor on. */

static void rewind_cursor(struct hw_media_op *op)
{
    op->cursor = op->first;
    op->iov_index = 0;
    op->iov_offset = 0;
}

/* The next contiguous part of the buffer, at most `len` bytes. */
static struct iovec next_stretch(struct hw_media_op *op, size_t len)
{
    struct iovec *iov = &op->iov[op->iov_index];
    struct iovec stretch = {
        .iov_base = (uint8_t *)iov->iov_base + op->iov_offset,
        .iov_len = MIN(len, iov->iov_len - op->iov_offset),
    };

    op->iov_offset += (uint32_t)stretch.iov_len;
    if (op->iov_offset == iov->iov_len) {
        op->iov_index++;
        op->iov_offset = 0;
    }
    return stretch;
}

static void copy_from_buffer(struct hw_media_op *op, uint8_t *to, size_t len)
{
    while (len > 0) {
        struct iovec from = next_stretch(op, len);

        memcpy(to, from.iov_base, from.iov_len);
        to += from.iov_len;
        len -= from.iov_len;
    }
}

static void copy_to_buffer(struct hw_media_op *op, const uint8_t *from,
                           size_t len)
{
    while (len > 0) {
        struct iovec to = next_stretch(op, len);

        memcpy(to.iov_base, from, to.iov_len);
        from += to.iov_len;
        len -= to.iov_len;
    }
}

/* ---- FLUSH: one request to the medium serves all waiting operations. */

static void start_flush(struct hw_media *media)
{
    const struct media_backend *backend = &media->config.backend;

    media->flush_running = media->flush_waiters;
    media_list_init(&media->flush_waiters);
    media->is_flushing = true;
    media->medium_dirty = false;
    media_count(media, MEDIA_COUNT_MEDIUM_FLUSHES, 1);
    backend->flush(backend->ctx, IO_FLUSH);
}

/* @return true when there is nothing to wait for */
static bool enter_flush(struct hw_media *media, struct hw_media_op *op)
{
    op->state = HW_OP_FLUSH;
    if (op->opcode != MEDIA_CMD_READ) {
        media_overlap_end(media, op);
    }
    if (!media->medium_dirty) {
        if (!media->is_flushing) {
            return true;
        }
        /* The flush in progress began after all data of `op` was written. */
        media_list_put(media, &media->flush_running, op);
        return false;
    }
    media_list_put(media, &media->flush_waiters, op);
    if (!media->is_flushing) {
        start_flush(media);
    }
    return false;
}

void media_op_flush_done(struct hw_media *media, int result)
{
    struct hw_media_list done = media->flush_running;
    struct hw_media_op *op;

    media->is_flushing = false;
    media_list_init(&media->flush_running);
    if (result != 0) {
        media->medium_dirty = true;
    }
    if (!media_list_is_empty(&media->flush_waiters)) {
        start_flush(media);
    }
    while ((op = media_list_take(media, &done)) != NULL) {
        if (result != 0) {
            fail_op(media, op, media_status_of(op, result));
        } else {
            advance_op(media, op);
        }
    }
    if (result != 0 && media->is_stopped) {
        media->destage_failed = true; /* pause instead of trying without end */
        media->destage_status = MEDIA_CQE_WRITE_ERROR;
    }
    media_destage_pump(media);
}

/* ---- FILL */

/*
 * Copy data into the cache.
 * @return false when the operation has to wait for room
 */
static bool fill_cache(struct hw_media *media, struct hw_media_op *op)
{
    struct media_cache *cache = &media->cache;

    while (op->cursor < op->end) {
        unsigned int bit = op->cursor % CACHE_SECTORS;
        unsigned int n = (unsigned int)MIN((uint64_t)(CACHE_SECTORS - bit),
                                           op->end - op->cursor);
        uint8_t mask = (uint8_t)(((1u << n) - 1) << bit);
        struct media_line *line = media_cache_prepare(
            cache, (uint32_t)(op->cursor / CACHE_SECTORS), mask);

        if (line == NULL) {
            return false;
        }
        copy_from_buffer(op,
                         media_line_data(cache, line) +
                             ((size_t)bit << CACHE_SECTOR_SHIFT),
                         (size_t)n << CACHE_SECTOR_SHIFT);
        media_cache_mark_dirty(cache, line, mask);
        op->cursor += n;
    }
    media_destage_note_write(media);
    return true;
}

/* @return true when all data is in the cache */
static bool run_fill(struct hw_media *media, struct hw_media_op *op,
                     bool is_first)
{
    bool is_behind = is_first && !media_list_is_empty(&media->room_waiters);

    if (!is_behind && fill_cache(media, op)) {
        return true;
    }
    if (is_first) {
        media_count(media, MEDIA_COUNT_CACHE_FULL, 1);
        media_list_put(media, &media->room_waiters, op);
    } else {
        media_list_put_first(media, &media->room_waiters, op);
    }
    return false;
}

/* ---- SYNC: destage the operation's blocks. */

static uint8_t sectors_of_line(const struct hw_media_op *op, uint64_t key)
{
    uint64_t base = key * CACHE_SECTORS;
    unsigned int from = op->first > base ? (unsigned int)(op->first - base) : 0;
    unsigned int to = op->end < base + CACHE_SECTORS
                          ? (unsigned int)(op->end - base)
                          : CACHE_SECTORS;

    return (uint8_t)(((1u << to) - 1) & ~((1u << from) - 1));
}

/* @return false when the operation has to wait for a request to end */
static bool sync_line(struct hw_media *media, struct hw_media_op *op,
                      uint64_t key)
{
    struct media_line *line = media_cache_find(&media->cache, (uint32_t)key);
    uint8_t wanted = sectors_of_line(op, key);

    if (op->sync_started) {
        /* Sectors that are dirty again by then were written after this command
         * began. */
        return media->batches[op->sync_batch].serial != op->sync_serial;
    }
    if (line == NULL || !(media_line_valid(line) & wanted)) {
        return true;
    }
    if (line->inflight == 0) {
        uint32_t batch = media_destage_line(media, line);

        if (batch != CACHE_NONE) {
            op->sync_started = !(line->dirty & wanted);
            op->sync_batch = (uint8_t)batch;
            op->sync_serial = media->batches[batch].serial;
        }
    }
    return false;
}

static bool run_sync(struct hw_media *media, struct hw_media_op *op)
{
    while (op->cursor < op->end) {
        uint64_t key = op->cursor / CACHE_SECTORS;

        if (!sync_line(media, op, key)) {
            media_list_put(media, &media->io_waiters, op);
            return false;
        }
        op->sync_started = false;
        op->cursor = (key + 1) * CACHE_SECTORS;
    }
    return true;
}

static bool enter_sync(struct hw_media *media, struct hw_media_op *op)
{
    op->state = HW_OP_SYNC;
    op->cursor = op->first;
    op->sync_started = false;
    if (media->cache.used_lines == 0) {
        op->cursor = op->end;
        return true;
    }
    media->destage_failed = false; /* try again, because an operation waits */
    return run_sync(media, op);
}

/* ---- DRAIN: destage everything written so far. */

static bool enter_drain(struct hw_media *media, struct hw_media_op *op)
{
    op->state = HW_OP_DRAIN;
    op->epoch = media_cache_close_epoch(&media->cache);
    if (media_cache_is_drained(&media->cache, op->epoch)) {
        return true;
    }
    media->destage_failed = false;
    media_list_put(media, &media->drain_waiters, op);
    return false;
}

/* ---- IO: requests of the operation itself. */

static void read_all(struct hw_media *media, struct hw_media_op *op)
{
    const struct media_backend *backend = &media->config.backend;

    op->cursor = op->end;
    op->pending = 1;
    media_count(media, MEDIA_COUNT_MEDIUM_READS, 1);
    backend->readv(backend->ctx, media_op_index(media, op),
                   op->first << CACHE_SECTOR_SHIFT, op->iov, op->num_iov);
}

static void read_gap(struct hw_media *media, struct hw_media_op *op,
                     uint64_t sectors)
{
    const struct media_backend *backend = &media->config.backend;
    uint32_t id = media->free_slice;
    struct hw_media_slice *slice = &media->slices[id];
    size_t len = (size_t)sectors << CACHE_SECTOR_SHIFT;
    uint64_t offset = op->cursor << CACHE_SECTOR_SHIFT;
    unsigned int n = 0;

    media->free_slice = slice->next_free;
    slice->op = media_op_index(media, op);
    while (len > 0) {
        slice->iov[n] = next_stretch(op, len);
        len -= slice->iov[n++].iov_len;
    }
    op->cursor += sectors;
    op->pending++;
    op->touched_medium = true;
    media_count(media, MEDIA_COUNT_MEDIUM_READS, 1);
    backend->readv(backend->ctx, IO_SLICE0 + id, offset, slice->iov, n);
}

/*
 * Find the end of the run of sectors, from `from` on, that are all cached or
 * all not cached.  A cached run ends at the end of its line at the latest.
 */
static uint64_t same_run(const struct hw_media *media,
                         const struct hw_media_op *op, uint64_t from,
                         const struct media_line **line)
{
    uint64_t at = from;

    *line = NULL;
    while (at < op->end) {
        const struct media_line *here =
            media_cache_find(&media->cache, (uint32_t)(at / CACHE_SECTORS));
        uint8_t valid = here != NULL ? media_line_valid(here) : 0;
        uint64_t line_end =
            MIN((at / CACHE_SECTORS + 1) * CACHE_SECTORS, op->end);

        if (at == from && (valid >> (at % CACHE_SECTORS) & 1)) {
            *line = here;
        }
        while (at < line_end &&
               (valid >> (at % CACHE_SECTORS) & 1) == (*line != NULL)) {
            at++;
        }
        if (at < line_end || *line != NULL) {
            break;
        }
    }
    return at - from;
}

/* The next `sectors` of the operation are read from the cache.
 * @return whether no word of them is lost */
static bool check_cached(struct hw_media *media, const struct hw_media_op *op,
                         uint64_t sectors)
{
    const struct hw_media_config *config = &media->config;
    uint32_t bits =
        config->cache_bits == NULL
            ? 0
            : config->cache_bits(config->cache_ctx,
                                 op->cursor << CACHE_SECTOR_SHIFT,
                                 (op->cursor + sectors) << CACHE_SECTOR_SHIFT);

    if (bits != 0) {
        hw_media_note_cache_error(media, bits > 1);
    }
    return bits <= 1;
}

/* @return true when all requests have been started and have ended */
static bool run_read(struct hw_media *media, struct hw_media_op *op)
{
    if (op->cursor == op->first && media->cache.used_lines == 0) {
        op->touched_medium = true;
        read_all(media, op);
        return false;
    }
    while (op->cursor < op->end) {
        const struct media_line *line;
        uint64_t n = same_run(media, op, op->cursor, &line);

        if (line != NULL && !check_cached(media, op, n)) {
            op->status = MEDIA_CQE_READ_ERROR;
            op->cursor = op->end;
        } else if (line != NULL) {
            copy_to_buffer(
                op,
                media_line_data(&media->cache, line) +
                    ((op->cursor % CACHE_SECTORS) << CACHE_SECTOR_SHIFT),
                (size_t)n << CACHE_SECTOR_SHIFT);
            op->cursor += n;
        } else if (op->cursor == op->first && n == op->end - op->first) {
            op->touched_medium = true;
            read_all(media, op);
            return false;
        } else if (media->free_slice != CACHE_NONE) {
            read_gap(media, op, n);
        } else {
            media_list_put(media, &media->io_waiters, op);
            return false;
        }
    }
    return op->pending == 0;
}

static void write_past_cache(struct hw_media *media, struct hw_media_op *op)
{
    const struct media_backend *backend = &media->config.backend;

    op->state = HW_OP_IO;
    op->cursor = op->end;
    op->pending = 1;
    media_count(media, MEDIA_COUNT_MEDIUM_WRITES, 1);
    backend->writev(backend->ctx, media_op_index(media, op),
                    op->first << CACHE_SECTOR_SHIFT, op->iov, op->num_iov);
}

/* @return true when all blocks have been zeroed */
static bool run_zeroes(struct hw_media *media, struct hw_media_op *op)
{
    const struct media_backend *backend = &media->config.backend;
    uint64_t n = MIN(op->end - op->cursor, (uint64_t)ZERO_SECTORS_MAX);
    uint64_t offset = op->cursor << CACHE_SECTOR_SHIFT;

    if (n == 0) {
        return true;
    }
    op->cursor += n;
    op->pending = 1;
    media_count(media, MEDIA_COUNT_MEDIUM_WRITES, 1);
    backend->write_zeroes(backend->ctx, media_op_index(media, op), offset,
                          n << CACHE_SECTOR_SHIFT,
                          op->opcode == MEDIA_CMD_DEALLOCATE);
    return false;
}

static bool enter_io(struct hw_media *media, struct hw_media_op *op)
{
    op->state = HW_OP_IO;
    op->touched_medium = false;
    rewind_cursor(op);
    return op->opcode == MEDIA_CMD_READ ? run_read(media, op)
                                        : run_zeroes(media, op);
}

/* ---- Transitions. */

static void finish_read(struct hw_media *media, struct hw_media_op *op)
{
    if (!op->touched_medium && op->status == MEDIA_CQE_OK) {
        media_count(media, MEDIA_COUNT_CACHE_READS, 1);
    }
    media_complete(media, op);
}

/*
 * The step of op->state is done: take the next steps until the operation waits
 * again or completes.
 */
static void advance_op(struct hw_media *media, struct hw_media_op *op)
{
    for (;;) {
        bool is_done = false;

        switch ((enum hw_media_op_state)op->state) {
        case HW_OP_FILL:
            if (!op->is_durable) {
                media_count(media, MEDIA_COUNT_CACHE_WRITES, 1);
                media_complete(media, op);
                return;
            }
            is_done = enter_sync(media, op);
            break;
        case HW_OP_SYNC:
        case HW_OP_DRAIN:
            is_done = op->opcode == MEDIA_CMD_WRITE_ZEROES ||
                              op->opcode == MEDIA_CMD_DEALLOCATE
                          ? enter_io(media, op)
                          : enter_flush(media, op);
            break;
        case HW_OP_FLUSH:
            if (op->opcode != MEDIA_CMD_READ) {
                media_complete(media, op);
                return;
            }
            is_done = enter_io(media, op);
            break;
        case HW_OP_IO:
            if (op->opcode == MEDIA_CMD_READ) {
                finish_read(media, op);
                return;
            }
            if (!op->is_durable) {
                media_complete(media, op);
                return;
            }
            is_done = enter_flush(media, op);
            break;
        case HW_OP_FREE:
        case HW_OP_STATES:
            ASSERT(false);
        }
        if (!is_done) {
            return;
        }
    }
}

static bool goes_past_cache(const struct hw_media *media,
                            const struct hw_media_op *op)
{
    uint64_t lines = (op->end - op->first) / CACHE_SECTORS;

    return (op->is_durable ||
            lines > media->cache.line_count / PAST_CACHE_DIVISOR ||
            media->cache.line_count == 0) &&
           !media_cache_overlaps(&media->cache, op->first, op->end);
}

static void begin_write(struct hw_media *media, struct hw_media_op *op)
{
    rewind_cursor(op);
    if (goes_past_cache(media, op)) {
        write_past_cache(media, op);
        return;
    }
    op->state = HW_OP_FILL;
    if (media->destage_failed && media->cache.free_page_count == 0) {
        fail_op(media, op, media->destage_status);
        return;
    }
    if (run_fill(media, op, true)) {
        advance_op(media, op);
    }
}

static void begin_zeroes(struct hw_media *media, struct hw_media_op *op)
{
    uint64_t lines = (op->end - op->first) / CACHE_SECTORS;
    bool is_done =
        lines > SYNC_LINES_MAX ? enter_drain(media, op) : enter_sync(media, op);

    if (is_done) {
        advance_op(media, op);
    }
}

void media_op_begin(struct hw_media *media, struct hw_media_op *op)
{
    bool is_done = false;

    if (!FIELD_GET(media->regs.cache_ctrl, MEDIA_CACHE_CTRL, ENABLE) &&
        op->opcode != MEDIA_CMD_READ) {
        op->is_durable = true;
    }
    switch (op->opcode) {
    case MEDIA_CMD_READ:
        is_done = op->is_durable ? enter_sync(media, op) : enter_io(media, op);
        break;
    case MEDIA_CMD_WRITE:
        begin_write(media, op);
        break;
    case MEDIA_CMD_FLUSH:
        is_done = enter_drain(media, op);
        break;
    case MEDIA_CMD_WRITE_ZEROES:
    case MEDIA_CMD_DEALLOCATE:
        begin_zeroes(media, op);
        break;
    default: /* NOP */
        media_complete(media, op);
        break;
    }
    if (is_done) {
        advance_op(media, op);
    }
}

/* ---- Ends of requests. */

static void resume_io(struct hw_media *media, struct hw_media_op *op)
{
    bool is_done = op->opcode == MEDIA_CMD_READ ? run_read(media, op)
                                                : run_zeroes(media, op);

    if (is_done) {
        advance_op(media, op);
    }
}

/* Handle the end of the last pending request of an operation in IO. */
static void io_ended(struct hw_media *media, struct hw_media_op *op)
{
    if (op->status != MEDIA_CQE_OK) {
        media_complete(media, op);
    } else if (op->opcode == MEDIA_CMD_WRITE || op->cursor == op->end) {
        advance_op(media, op);
    } else {
        resume_io(media, op);
    }
}

void media_op_io_done(struct hw_media *media, struct hw_media_op *op,
                      int result)
{
    op->pending = 0;
    op->status = media_status_of(op, result);
    if (op->opcode != MEDIA_CMD_READ) {
        /* A failed write may have been written in part. */
        media->medium_dirty = true;
    }
    io_ended(media, op);
    media_destage_pump(media);
}

void media_op_slice_done(struct hw_media *media, uint32_t id, int result)
{
    struct hw_media_slice *slice = &media->slices[id];
    struct hw_media_op *op = &media->ops[slice->op];

    slice->next_free = media->free_slice;
    media->free_slice = id;
    op->pending--;
    if (result != 0) {
        op->status = media_status_of(op, result);
    }
    /* An operation with more requests to start is in io_waiters and is woken
     * below. */
    if (op->pending == 0 && op->cursor == op->end) {
        io_ended(media, op);
    }
    media_op_wake(media);
    media_destage_pump(media);
}

/* ---- Waking operations. */

static void wake_drained(struct hw_media *media)
{
    while (!media_list_is_empty(&media->drain_waiters) &&
           media_cache_is_drained(
               &media->cache, media->ops[media->drain_waiters.head].epoch)) {
        advance_op(media, media_list_take(media, &media->drain_waiters));
    }
}

static void wake_io_waiter(struct hw_media *media, struct hw_media_op *op)
{
    if (op->state == HW_OP_SYNC) {
        if (run_sync(media, op)) {
            advance_op(media, op);
        }
    } else if (op->status != MEDIA_CQE_OK) {
        /* A part has failed: start no further requests. */
        op->cursor = op->end;
        if (op->pending == 0) {
            media_complete(media, op);
        }
    } else {
        resume_io(media, op);
    }
}

void media_op_wake(struct hw_media *media)
{
    struct hw_media_list waiters = media->io_waiters;
    struct hw_media_op *op;

    media_list_init(&media->io_waiters);
    while ((op = media_list_take(media, &waiters)) != NULL) {
        wake_io_waiter(media, op);
    }
    wake_drained(media);
    while ((op = media_list_take(media, &media->room_waiters)) != NULL) {
        if (!run_fill(media, op, false)) {
            break;
        }
        advance_op(media, op);
    }
}

static void fail_list(struct hw_media *media, struct hw_media_list *list,
                      uint8_t status)
{
    struct hw_media_list all = *list;
    struct hw_media_op *op;

    media_list_init(list);
    while ((op = media_list_take(media, &all)) != NULL) {
        if (op->state == HW_OP_IO) {
            media_list_put(media, list, op); /* a read does not wait for this */
        } else {
            fail_op(media, op, status);
        }
    }
}

void media_op_fail_waiters(struct hw_media *media, uint8_t status)
{
    fail_list(media, &media->io_waiters, status);
    fail_list(media, &media->drain_waiters, status);
    fail_list(media, &media->room_waiters, status);
}
