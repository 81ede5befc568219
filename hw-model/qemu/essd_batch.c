/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Frames on their way to a netdev: see essd_batch.h. */
#include "qemu/osdep.h"
#include "essd_batch.h"

static bool essd_batch_is_full(const EssdBatch *batch)
{
    return batch->count == BATCH_FRAMES || batch->len_bytes >= BATCH_BYTES;
}

static void essd_batch_copy_frame(EssdBatch *batch,
                                  const struct frame_tx *frame)
{
    struct iovec *iov = &batch->iov[batch->count];
    uint8_t *bytes = &batch->bytes[batch->len_bytes];

    *iov = (struct iovec){bytes, frame_tx_copy(bytes, frame)};
    batch->frames[batch->count++] = (NetFrame){iov, 1};
    batch->len_bytes += iov->iov_len;
}

void essd_batch_clear(EssdBatch *batch)
{
    batch->next = 0;
    batch->count = 0;
    batch->len_bytes = 0;
}

void essd_batch_flush(EssdBatch *batch)
{
    unsigned int count = essd_batch_count(batch);
    unsigned int taken;

    if (count == 0 || batch->waits) {
        return;
    }
    taken = qemu_sendv_burst_async(batch->nc, &batch->frames[batch->next],
                                   count, batch->sent);
    batch->waits = taken < count;
    batch->next += taken + batch->waits;
    if (batch->next == batch->count) {
        essd_batch_clear(batch);
    }
}

static bool essd_batch_is_filled_by(const struct frame_tx *frames,
                                    unsigned int count)
{
    unsigned int len_bytes = 0;

    for (unsigned int n = 0; n < count && len_bytes < BATCH_BYTES; n++) {
        len_bytes += frame_tx_len(&frames[n]);
    }
    return len_bytes >= BATCH_BYTES;
}

static unsigned int essd_batch_iov(const struct frame_tx *frame,
                                   struct iovec *iov)
{
    unsigned int n = 0;

    iov[n++] = (struct iovec){(void *)frame->head, frame->head_len};
    for (unsigned int i = 0; i < frame->num_pieces; i++) {
        iov[n++] = (struct iovec){(void *)frame->pieces[i].data,
                                  frame->pieces[i].len_bytes};
    }
    if (frame->tail_len > 0) {
        iov[n++] = (struct iovec){(void *)frame->tail, frame->tail_len};
    }
    return n;
}

/*
 * Pass frames to the netdev from where they are, after those of the batch.  One
 * that it cannot send now is copied into its queue, and counts as passed.
 */
static unsigned int essd_batch_pass(EssdBatch *batch,
                                    const struct frame_tx *frames,
                                    unsigned int count)
{
    NetFrame burst[BATCH_BURST];
    struct iovec iov[BATCH_BURST][FRAME_PIECES_MAX + 2];
    unsigned int taken;

    essd_batch_flush(batch);
    if (batch->waits) {
        return 0;
    }
    count = MIN(count, (unsigned int)BATCH_BURST);
    for (unsigned int n = 0; n < count; n++) {
        burst[n] = (NetFrame){iov[n], essd_batch_iov(&frames[n], iov[n])};
    }
    taken = qemu_sendv_burst_async(batch->nc, burst, count, batch->sent);
    batch->waits = taken < count;
    return taken + batch->waits;
}

unsigned int essd_batch_add(EssdBatch *batch, const struct frame_tx *frames,
                            unsigned int count)
{
    unsigned int n = 0;

    while (!batch->waits && essd_batch_is_filled_by(frames + n, count - n)) {
        n += essd_batch_pass(batch, frames + n, count - n);
    }
    for (; n < count && !batch->waits; n++) {
        essd_batch_copy_frame(batch, &frames[n]);
        if (essd_batch_is_full(batch)) {
            essd_batch_flush(batch);
        }
    }
    return n;
}
