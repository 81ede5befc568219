/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Split virtqueues of a virtio network card, from the device's side.
 * Specification: virtio 1.2, sections 2.7 and 5.1.6.
 *
 * The driver, in another process, may write the ring and the buffers at any
 * time.  What it does wrong is VHOST_BROKEN, and the ring must then no longer
 * be used.  Each word of the ring is read once, and frames are copied.
 *
 * Frames are used in the order in which they became available, and each at
 * once, so that one index counts both.
 *
 * Not implemented: packed rings, indirect descriptors, offloads.
 */
#ifndef ESSD_HW_VHOST_RING_H
#define ESSD_HW_VHOST_RING_H

#include "hw-model/core/frame.h"
#include "hw-model/vhost/vhost_memory.h"
#include "lib/util.h"

enum { VHOST_RING_MAX = 1024 }; /* largest number of entries */

enum vhost_verdict {
    VHOST_OK,
    VHOST_EMPTY,  /* the driver has made too few buffers available */
    VHOST_BROKEN, /* the driver has broken the rules */
};

struct vhost_ring {
    const struct vhost_memory *memory;
    uint8_t *desc; /* NULL: the ring is not in use */
    uint8_t *avail;
    uint8_t *used;
    uint64_t used_addr; /* guest address of `used` for the log of writes */
    bool used_is_logged;
    uint16_t size;      /* a power of two, at most VHOST_RING_MAX */
    bool has_event_idx; /* VIRTIO_RING_F_EVENT_IDX */
    bool is_mergeable;  /* VIRTIO_NET_F_MRG_RXBUF */
    uint8_t header_len; /* of the header before each frame: 10 or 12 */
    uint16_t next;      /* the next buffer that the driver makes available */
    uint16_t published; /* what the driver sees of `next` */
    uint16_t told;      /* of what it was notified, if it asked for it */
};

/** Bytes of the three areas of a ring. */
uint32_t vhost_ring_desc_len(uint16_t size);
uint32_t vhost_ring_avail_len(uint16_t size);
uint32_t vhost_ring_used_len(uint16_t size);

/** All other fields are set: go on where the used ring ends. */
void vhost_ring_start(struct vhost_ring *ring);

/**
 * How many buffers the driver has made available.
 * @return VHOST_BROKEN if there are more than the ring has entries
 */
MUST_USE enum vhost_verdict vhost_ring_count(const struct vhost_ring *ring,
                                             unsigned int *count);

/**
 * Ask for a notification when the driver makes available more buffers than it
 * has, or no longer.
 *
 * @param count  out: how many it has; for each further one it notifies
 */
MUST_USE enum vhost_verdict vhost_ring_watch(struct vhost_ring *ring,
                                             unsigned int *count);
void vhost_ring_unwatch(struct vhost_ring *ring);

/**
 * Copy the next frame that the driver sends, without its header.
 *
 * @param to   room for FRAME_LEN_MAX bytes
 * @param len  out: 0 if the frame is empty or too long, and so is dropped
 */
MUST_USE enum vhost_verdict vhost_ring_take(struct vhost_ring *ring,
                                            uint8_t *to, uint32_t *len);

/**
 * Copy a frame into the driver's buffers.  A frame for which the buffers are
 * too small is dropped, and counts as copied.
 */
MUST_USE enum vhost_verdict vhost_ring_give(struct vhost_ring *ring,
                                            const struct frame_piece *pieces,
                                            unsigned int count);

/**
 * Let the driver see which buffers were used.
 * @return whether it wants to be notified
 */
MUST_USE bool vhost_ring_publish(struct vhost_ring *ring);

#endif
