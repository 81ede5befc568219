/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The storage that the media engine uses: a QEMU block device, or memory in
 * native programs.
 *
 * Each call starts one request and returns. hw_media_io_done() is called once
 * for each request, in any order, but never from inside the call that started
 * the request.  `id` identifies the request until then, 0..HW_MEDIA_IO_IDS - 1;
 * vectors and buffers stay valid until then.  Two requests write the same
 * blocks at the same time only if the host issued overlapping writes at the
 * same time.
 */
#ifndef ESSD_HW_MEDIA_BACKEND_H
#define ESSD_HW_MEDIA_BACKEND_H

#include <sys/uio.h>

#include "lib/util.h"

enum { HW_MEDIA_IO_IDS = 512 + 64 + 8 + 1 };

struct media_backend {
    void *ctx;

    /*
     * Read or write `len` bytes at byte offset `offset`.  Both are multiples of
     * 512, and the lengths of the vectors add up to `len`.
     */
    void (*readv)(void *ctx, uint32_t id, uint64_t offset,
                  const struct iovec *iov, unsigned int niov);
    void (*writev)(void *ctx, uint32_t id, uint64_t offset,
                   const struct iovec *iov, unsigned int niov);

    /* Zero at most 1 GiB.  With may_unmap the storage may be deallocated. */
    void (*write_zeroes)(void *ctx, uint32_t id, uint64_t offset, uint64_t len,
                         bool may_unmap);

    /*
     * When this completes, all requests that completed before it are durable.
     */
    void (*flush)(void *ctx, uint32_t id);
};

#endif
