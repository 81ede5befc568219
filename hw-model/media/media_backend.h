/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the media engine keeps its blocks on: a QEMU block device, or memory in
 * native programs.
 *
 * Asynchronous: each call starts one request and returns; hw_media_io_done()
 * is called once for each, in any order, never from inside the call.  `id`
 * names the request among those under way, 0..HW_MEDIA_IO_IDS - 1.  Vectors
 * and what they point to stay valid until then.  The engine never has two
 * requests under way that write the same blocks, unless the host asked for
 * both at the same time.
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

    /* At most 1 GiB; storage may be given back when may_unmap. */
    void (*write_zeroes)(void *ctx, uint32_t id, uint64_t offset, uint64_t len,
                         bool may_unmap);

    /* What completed before is durable when this completes. */
    void (*flush)(void *ctx, uint32_t id);
};

#endif
