/* SPDX-License-Identifier: BSD-2-Clause */
/* Media faults: requests that fail, take longer or never end. */
#include "hw-model/fault/fault_media.h"

#include <errno.h>

void fault_media_init(struct fault_media *media,
                      const struct fault_media_config *config)
{
    media->config = *config;
}

static bool request_is_due(const struct fault_media *media,
                           const struct fault_media_request *request,
                           uint64_t now_ns)
{
    if (request->stuck_by != 0) {
        const struct fault_rule *rule =
            fault_table_find(media->config.table, request->stuck_by);

        return rule == NULL || !rule->is_on;
    }
    return request->due_ns <= now_ns;
}

static void set_media_timer(struct fault_media *media)
{
    uint64_t deadline_ns = UINT64_MAX;

    for (uint32_t id = 0; media->num_ended > 0 && id < HW_MEDIA_IO_IDS; id++) {
        const struct fault_media_request *request = &media->requests[id];

        if (request->state == FAULT_REQUEST_ENDED && request->stuck_by == 0) {
            deadline_ns = MIN(deadline_ns, request->due_ns);
        }
    }
    media->config.set_timer(media->config.ctx, deadline_ns);
}

static void end_request(struct fault_media *media, uint32_t id)
{
    struct fault_media_request *request = &media->requests[id];
    int result = request->result;

    *request = (struct fault_media_request){0};
    media->num_ended--;
    media->config.done(media->config.ctx, id, result);
}

static void hold_ended(struct fault_media *media, uint32_t id, int result)
{
    media->requests[id].state = FAULT_REQUEST_ENDED;
    media->requests[id].result = result;
    media->num_ended++;
    set_media_timer(media);
}

static bool media_has_rules(const struct fault_media *media)
{
    return fault_table_has(media->config.table, FAULT_MEDIA);
}

/*
 * Ask the rules about a request.  Without rules for the media, no request comes
 * here, and all stay FAULT_REQUEST_PLAIN.
 * @return true when the request is passed on to the storage
 */
static bool admit_request(struct fault_media *media, uint32_t id,
                          enum fault_media_op op, uint64_t first, uint64_t end)
{
    struct fault_media_request *request = &media->requests[id];
    struct fault_verdict verdict =
        fault_judge_media(media->config.table, op, first, end);
    uint64_t now_ns = media->config.now_ns(media->config.ctx);

    *request = (struct fault_media_request){0};
    switch (verdict.action) {
    case FAULT_ERROR:
        request->due_ns = now_ns;
        hold_ended(media, id, -EIO);
        return false;
    case FAULT_DELAY:
        request->state = FAULT_REQUEST_DELAYED;
        request->due_ns = now_ns + MIN(verdict.argument, UINT64_MAX - now_ns);
        return true;
    case FAULT_STUCK:
        request->state = FAULT_REQUEST_DELAYED;
        request->stuck_by = verdict.id;
        return true;
    case FAULT_POWER_CUT:
        media->config.power_cut(media->config.ctx, verdict.id);
        return false;
    default:
        return true;
    }
}

void fault_media_below_done(struct fault_media *media, uint32_t id, int result)
{
    struct fault_media_request *request = &media->requests[id];
    uint64_t now_ns = 0;

    if (request->state == FAULT_REQUEST_DELAYED) {
        now_ns = media->config.now_ns(media->config.ctx);
        if (!request_is_due(media, request, now_ns)) {
            hold_ended(media, id, result);
            return;
        }
        *request = (struct fault_media_request){0};
    }
    media->config.done(media->config.ctx, id, result);
}

void fault_media_timer(struct fault_media *media)
{
    uint64_t now_ns = media->config.now_ns(media->config.ctx);

    for (uint32_t id = 0; media->num_ended > 0 && id < HW_MEDIA_IO_IDS; id++) {
        if (media->requests[id].state == FAULT_REQUEST_ENDED &&
            request_is_due(media, &media->requests[id], now_ns)) {
            end_request(media, id);
        }
    }
    set_media_timer(media);
}

void fault_media_release(struct fault_media *media)
{
    for (uint32_t id = 0; id < HW_MEDIA_IO_IDS; id++) {
        struct fault_media_request *request = &media->requests[id];

        if (request->state == FAULT_REQUEST_ENDED) {
            end_request(media, id);
        } else {
            request->state = FAULT_REQUEST_PLAIN;
        }
    }
    set_media_timer(media);
}

/* ---- The back-end */

static uint64_t iov_bytes(const struct iovec *iov, unsigned int niov)
{
    uint64_t len = 0;

    for (unsigned int i = 0; i < niov; i++) {
        len += iov[i].iov_len;
    }
    return len;
}

static void admit_readv(void *ctx, uint32_t id, uint64_t offset,
                        const struct iovec *iov, unsigned int niov)
{
    struct fault_media *media = ctx;
    const struct media_backend *below = &media->config.below;

    if (!media_has_rules(media) ||
        admit_request(media, id, FAULT_OP_READ, offset,
                      offset + iov_bytes(iov, niov))) {
        below->readv(below->ctx, id, offset, iov, niov);
    }
}

uint32_t fault_media_cache_bits(void *ctx, uint64_t first, uint64_t end)
{
    struct fault_media *media = ctx;

    return media_has_rules(media)
               ? fault_judge_cache(media->config.table, first, end)
               : 0;
}

/*
 * The engine reads data of its cache to write it to the medium.
 * @return false if a word of the data is lost: the request fails
 */
static bool admit_cached(struct fault_media *media, uint32_t id, uint64_t first,
                         uint64_t end)
{
    uint32_t bits;

    if (id < media->config.first_cache_id || id >= media->config.end_cache_id) {
        return true;
    }
    bits = fault_judge_cache(media->config.table, first, end);
    if (bits != 0) {
        media->config.cache_error(media->config.ctx, bits > 1);
    }
    if (bits <= 1) {
        return true;
    }
    media->requests[id] = (struct fault_media_request){
        .due_ns = media->config.now_ns(media->config.ctx),
    };
    hold_ended(media, id, -EIO);
    return false;
}

static void admit_writev(void *ctx, uint32_t id, uint64_t offset,
                         const struct iovec *iov, unsigned int niov)
{
    struct fault_media *media = ctx;
    const struct media_backend *below = &media->config.below;
    uint64_t end = offset + iov_bytes(iov, niov);

    if (!media_has_rules(media) ||
        (admit_cached(media, id, offset, end) &&
         admit_request(media, id, FAULT_OP_WRITE, offset, end))) {
        below->writev(below->ctx, id, offset, iov, niov);
    }
}

static void admit_zeroes(void *ctx, uint32_t id, uint64_t offset, uint64_t len,
                         bool may_unmap)
{
    struct fault_media *media = ctx;
    const struct media_backend *below = &media->config.below;

    if (!media_has_rules(media) ||
        admit_request(media, id, FAULT_OP_ZEROES, offset, offset + len)) {
        below->write_zeroes(below->ctx, id, offset, len, may_unmap);
    }
}

static void admit_flush(void *ctx, uint32_t id)
{
    struct fault_media *media = ctx;
    const struct media_backend *below = &media->config.below;

    if (!media_has_rules(media) ||
        admit_request(media, id, FAULT_OP_FLUSH, 0, 0)) {
        below->flush(below->ctx, id);
    }
}

struct media_backend fault_media_backend(struct fault_media *media)
{
    return (struct media_backend){
        .ctx = media,
        .readv = admit_readv,
        .writev = admit_writev,
        .write_zeroes = admit_zeroes,
        .flush = admit_flush,
    };
}
