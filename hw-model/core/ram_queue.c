/* SPDX-License-Identifier: BSD-2-Clause */
/* Requests in progress to storage in memory: see ram_queue.h. */
#include "hw-model/core/ram_queue.h"

#include <stddef.h>
#include <string.h>

void ram_queue_init(struct ram_queue *queue, uint64_t size_bytes,
                    uint32_t align_bytes)
{
    queue->size_bytes = size_bytes;
    queue->align_bytes = align_bytes;
    queue->count = 0;
    queue->started = 0;
}

void ram_queue_copy(struct ram_queue *to, const struct ram_queue *from)
{
    memcpy(to, from,
           offsetof(struct ram_queue, requests) +
               from->count * sizeof(from->requests[0]));
}

static uint64_t total_bytes(const struct iovec *iov, unsigned int niov)
{
    uint64_t len = 0;

    for (unsigned int i = 0; i < niov; i++) {
        len += iov[i].iov_len;
    }
    return len;
}

static void add_request(struct ram_queue *queue,
                        const struct ram_request *request)
{
    ASSERT(queue->count < ARRAY_LEN(queue->requests));
    ASSERT(request->offset % queue->align_bytes == 0 &&
           request->len % queue->align_bytes == 0);
    ASSERT(request->offset + request->len <= queue->size_bytes);
    for (uint32_t i = 0; i < queue->count; i++) {
        ASSERT(queue->requests[i].id != request->id);
    }
    queue->requests[queue->count++] = *request;
    queue->started++;
}

void ram_queue_readv(void *ctx, uint32_t id, uint64_t offset,
                     const struct iovec *iov, unsigned int niov)
{
    add_request(ctx, &(struct ram_request){.kind = RAM_READ,
                                           .id = id,
                                           .niov = niov,
                                           .iov = iov,
                                           .offset = offset,
                                           .len = total_bytes(iov, niov)});
}

void ram_queue_writev(void *ctx, uint32_t id, uint64_t offset,
                      const struct iovec *iov, unsigned int niov)
{
    add_request(ctx, &(struct ram_request){.kind = RAM_WRITE,
                                           .id = id,
                                           .niov = niov,
                                           .iov = iov,
                                           .offset = offset,
                                           .len = total_bytes(iov, niov)});
}

void ram_queue_zero(void *ctx, uint32_t id, uint64_t offset, uint64_t len)
{
    add_request(ctx,
                &(struct ram_request){
                    .kind = RAM_ZERO, .id = id, .offset = offset, .len = len});
}

void ram_queue_flush(void *ctx, uint32_t id)
{
    add_request(ctx, &(struct ram_request){.kind = RAM_FLUSH, .id = id});
}

bool ram_queue_take(struct ram_queue *queue, uint32_t index,
                    struct ram_request *request)
{
    if (index >= queue->count) {
        return false;
    }
    *request = queue->requests[index];
    queue->count--;
    memmove(&queue->requests[index], &queue->requests[index + 1],
            (queue->count - index) * sizeof(queue->requests[0]));
    return true;
}

void ram_request_execute(const struct ram_request *request, uint8_t *bytes,
                         uint64_t len)
{
    uint8_t *at = bytes + request->offset;

    if (request->kind == RAM_ZERO) {
        memset(at, 0, len);
    }
    for (unsigned int i = 0; i < request->niov && len != 0; i++) {
        const struct iovec *iov = &request->iov[i];
        size_t part = MIN(iov->iov_len, len);

        if (request->kind == RAM_READ) {
            memcpy(iov->iov_base, at, part);
        } else {
            memcpy(at, iov->iov_base, part);
        }
        at += part;
        len -= part;
    }
}
