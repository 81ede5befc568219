/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Frames that have left a port, but have not been passed to its netdev yet.
 *
 * Many frames cost one system call then.  They are copied, because the port may
 * reuse their memory; only frames that would fill a batch of their own are
 * passed on at once, and not copied.  A batch is passed on when it is full, and
 * by its owner: essd_data.h says when.
 *
 * Everything runs under the big lock.
 */
#ifndef HW_ESSD_BATCH_H
#define HW_ESSD_BATCH_H

#include "net/net.h"

#include "hw-model/core/frame.h"

enum {
    BATCH_FRAMES = 64,       /* most frames of a batch */
    BATCH_BYTES = 64 * 1024, /* a batch of this size is full */
    BATCH_BURST = 32,        /* most frames passed on without a copy */
};

typedef struct EssdBatch {
    NetClientState *nc;  /* the card that sends */
    NetPacketSent *sent; /* clears `waits`, and flushes */
    /* The netdev has not sent the last frame yet.  The batch is full only while
     * this is so. */
    bool waits;
    unsigned int count;
    unsigned int next; /* frames before this one have been passed on */
    unsigned int len_bytes;
    NetFrame frames[BATCH_FRAMES];
    struct iovec iov[BATCH_FRAMES];
    uint8_t bytes[BATCH_BYTES + FRAME_LEN_MAX];
} EssdBatch;

/*
 * Add frames to the batch.
 * @return how many were added; fewer than `count` if the netdev takes no more
 */
unsigned int essd_batch_add(EssdBatch *batch, const struct frame_tx *frames,
                            unsigned int count);

/* The frames that have not been passed on yet. */
static inline unsigned int essd_batch_count(const EssdBatch *batch)
{
    return batch->count - batch->next;
}

/*
 * Pass the batch to the netdev.  A frame that it cannot send now is copied into
 * its queue; those behind it stay in the batch until sent() is called for it.
 */
void essd_batch_flush(EssdBatch *batch);

/* Drop the frames that the netdev has not taken: the cable has been pulled. */
void essd_batch_clear(EssdBatch *batch);

#endif
