/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Bytes of which only those that are not zero take memory, in chunks of 64
 * bytes: native programs simulate arrays that are larger than the computer's
 * memory, and write zeros as the data of hosts.
 */
#ifndef ESSD_HW_CORE_SPARSE_BYTES_H
#define ESSD_HW_CORE_SPARSE_BYTES_H

#include "lib/util.h"

struct sparse_page;

struct sparse_bytes {
    struct sparse_page **pages; /* NULL: all bytes of the page are zero */
    uint64_t size_bytes;
};

/** All bytes are zero.  Stops the process if there is no memory, like write. */
void sparse_bytes_init(struct sparse_bytes *sparse, uint64_t size_bytes);
void sparse_bytes_end(struct sparse_bytes *sparse);

/** The range is inside. */
void sparse_bytes_read(const struct sparse_bytes *sparse, uint64_t offset,
                       void *buf, size_t len);
void sparse_bytes_write(struct sparse_bytes *sparse, uint64_t offset,
                        const void *buf, size_t len);
void sparse_bytes_zero(struct sparse_bytes *sparse, uint64_t offset,
                       uint64_t len);

#endif
