/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An array of bytes in which chunks of 64 zero bytes take no memory.  Native
 * programs use it to simulate flash that is larger than the computer's memory:
 * their hosts write zeros as data.
 */
#ifndef ESSD_HW_CORE_SPARSE_BYTES_H
#define ESSD_HW_CORE_SPARSE_BYTES_H

#include "lib/util.h"

struct sparse_page;

struct sparse_bytes {
    struct sparse_page **pages; /* NULL: all bytes of the page are zero */
    uint64_t size_bytes;
};

/** Begin with all bytes zero.  This function and sparse_bytes_write() stop the
 * process if there is no memory. */
void sparse_bytes_init(struct sparse_bytes *sparse, uint64_t size_bytes);
void sparse_bytes_end(struct sparse_bytes *sparse);

/** The caller ensures that all ranges are within `size_bytes`. */
void sparse_bytes_read(const struct sparse_bytes *sparse, uint64_t offset,
                       void *buf, size_t len);
void sparse_bytes_write(struct sparse_bytes *sparse, uint64_t offset,
                        const void *buf, size_t len);
void sparse_bytes_zero(struct sparse_bytes *sparse, uint64_t offset,
                       uint64_t len);

#endif
