/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The storage below the media engine: a QEMU block device, or memory in native
 * programs.
 *
 * Each call starts one request and returns.  hw_media_io_done() is called once
 * for each request, in any order, never from inside the call that started it.
 * `id` identifies the request until then, 0..HW_MEDIA_IO_IDS - 1; vectors and
 * buffers stay valid until then.  Two requests write the same blocks at the
 * same time only if the host issued overlapping writes at the same time.
 */
#ifndef ESSD_HW_MEDIA_BACKEND_H
#define ESSD_HW_MEDIA_BACKEND_H

#include <sys/uio.h>

#include "lib/util.h"

enum { HW_MEDIA_IO_IDS = 512 + 64 + 8 + 1 };

struct media_backend {
    void *ctx;

    /* `len` bytes at byte offset `offset`, multiples of 512; the vectors'
     * lengths add up to len. */
    void (*readv)(void *ctx, uint32_t id, uint64_t offset,
                  const struct iovec *iov, unsigned int niov);
    void (*writev)(void *ctx, uint32_t id, uint64_t offset,
                   const struct iovec *iov, unsigned int niov);

    /* At most 1 GiB; with may_unmap the storage may be deallocated. */
    void (*write_zeroes)(void *ctx, uint32_t id, uint64_t offset, uint64_t len,
                         bool may_unmap);

    /* All requests that completed before are durable when this completes. */
    void (*flush)(void *ctx, uint32_t id);
};

#endif
