/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The memory of a virtual machine, which shares it by vhost-user.
 *
 * The machine may write it at any time, so nothing is read from it twice.
 */
#ifndef ESSD_HW_VHOST_MEMORY_H
#define ESSD_HW_VHOST_MEMORY_H

#include "lib/util.h"

enum { VHOST_REGIONS = 8 };

struct vhost_region {
    uint64_t guest_addr; /* as the guest's descriptors name it */
    uint64_t user_addr;  /* as messages name it: in the front-end's process */
    uint64_t size;       /* not 0 */
    uint8_t *data;       /* here */
    uint64_t offset;     /* of `data` in the mapping */
};

struct vhost_memory {
    unsigned int count;
    struct vhost_region regions[VHOST_REGIONS];

    /* One bit a page that was written, for a front-end that saves its machine;
     * NULL: none. */
    uint8_t *log;
    uint64_t log_size; /* in bytes */
};

/**
 * Find `len` bytes of the guest.
 *
 * @param len  in: not 0; out: how many of them are contiguous here
 * @return NULL if there is no memory at `addr`
 */
uint8_t *vhost_memory_guest(const struct vhost_memory *memory, uint64_t addr,
                            uint32_t *len);

/** The same for an address of the front-end; all bytes, or NULL. */
uint8_t *vhost_memory_user(const struct vhost_memory *memory, uint64_t addr,
                           uint32_t len);

/**
 * Bytes at an address of the guest were written.  Call this after the write: a
 * front-end that saves its machine clears the bit, and then copies the page.
 */
void vhost_memory_written(const struct vhost_memory *memory, uint64_t addr,
                          uint32_t len);

#endif
