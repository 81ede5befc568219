/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The storage of a NAND array: a QEMU block device, a file, or memory.
 *
 * Each call starts one request and returns.  nand_array_io_done() is called
 * once for each request, in any order, but never from inside the call that
 * started the request.  `id` identifies the request until then: it is below
 * nand_array_io_ids().  Vectors and buffers stay valid until then.
 *
 * A request has any length and offset in bytes.  The bytes of a write are
 * written in ascending order: a process that is killed leaves a part from the
 * beginning.  Requests that overlap are never in progress at the same time.
 */
#ifndef ESSD_HW_NAND_BACKEND_H
#define ESSD_HW_NAND_BACKEND_H

#include <sys/uio.h>

#include "lib/util.h"

struct nand_backend {
    void *ctx;

    void (*readv)(void *ctx, uint32_t id, uint64_t offset,
                  const struct iovec *iov, unsigned int niov);
    void (*writev)(void *ctx, uint32_t id, uint64_t offset,
                   const struct iovec *iov, unsigned int niov);

    /*
     * The bytes are not needed any longer: the storage may be deallocated.
     * What they read as afterwards does not matter.
     */
    void (*discard)(void *ctx, uint32_t id, uint64_t offset, uint64_t len);

    /*
     * When this completes, all requests that completed before it are durable.
     */
    void (*flush)(void *ctx, uint32_t id);
};

#endif
