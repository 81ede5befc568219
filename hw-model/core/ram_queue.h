/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Requests in progress to storage in memory, for native programs: a back-end
 * puts them into a queue, and its owner decides in which order they complete.
 */
#ifndef ESSD_HW_CORE_RAM_QUEUE_H
#define ESSD_HW_CORE_RAM_QUEUE_H

#include <sys/uio.h>

#include "lib/util.h"

enum { RAM_QUEUE_REQUESTS = 2048 }; /* in progress, at most */

enum ram_kind {
    RAM_READ,
    RAM_WRITE,
    RAM_ZERO, /* or discard */
    RAM_FLUSH,
};

struct ram_request {
    enum ram_kind kind;
    uint32_t id;
    unsigned int niov;
    const struct iovec *iov; /* stays valid until the request completes */
    uint64_t offset;         /* in bytes, as is the length */
    uint64_t len;
};

struct ram_queue {
    uint64_t size_bytes;  /* of the storage */
    uint32_t align_bytes; /* of offsets and lengths */
    uint32_t count;       /* in progress */
    uint64_t started;     /* since initialisation */
    struct ram_request requests[RAM_QUEUE_REQUESTS];
};

void ram_queue_init(struct ram_queue *queue, uint64_t size_bytes,
                    uint32_t align_bytes);

/** Make `to` a copy, without the entries that are not in use. */
void ram_queue_copy(struct ram_queue *to, const struct ram_queue *from);

/**
 * Add a request.  Its range is inside the storage, aligned, and its identifier
 * is not in use.  `ctx` is the queue, so that back-ends can have these
 * functions.
 */
void ram_queue_readv(void *ctx, uint32_t id, uint64_t offset,
                     const struct iovec *iov, unsigned int niov);
void ram_queue_writev(void *ctx, uint32_t id, uint64_t offset,
                      const struct iovec *iov, unsigned int niov);
void ram_queue_zero(void *ctx, uint32_t id, uint64_t offset, uint64_t len);
void ram_queue_flush(void *ctx, uint32_t id);

/**
 * Remove the request at `index` (0: the oldest) of those in progress.
 *
 * @return false when there is none
 */
MUST_USE bool ram_queue_take(struct ram_queue *queue, uint32_t index,
                             struct ram_request *request);

/**
 * Execute the first `len` bytes of a request.  A flush changes nothing.
 *
 * @param bytes  the storage
 */
void ram_request_execute(const struct ram_request *request, uint8_t *bytes,
                         uint64_t len);

#endif
