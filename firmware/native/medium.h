/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory that serves as the medium of the media engine's core.  It outlives the
 * drive.  A power cut loses everything that was not flushed, which is the worst
 * that a medium may do.
 */
#ifndef ESSD_NATIVE_MEDIUM_H
#define ESSD_NATIVE_MEDIUM_H

#include "hw-model/media/media_backend.h"

struct medium_done {
    uint32_t id;
    int result;
};

enum medium_kind {
    MEDIUM_READ,
    MEDIUM_WRITE,
    MEDIUM_ZEROES,
    MEDIUM_FLUSH,
};

struct medium_request {
    enum medium_kind kind;
    uint32_t id;
    uint64_t offset, len;
    const struct iovec *iov; /* buffers of reads and writes */
    unsigned int niov;
};

struct medium {
    uint64_t capacity_bytes;
    uint8_t *data;
    uint8_t *durable; /* the contents as of the last flush */
    /* One flag per 4096 bytes: data and durable may differ. */
    uint8_t *is_dirty;
    uint32_t done_count;
    struct medium_done done[HW_MEDIA_IO_IDS];
    int fail_reads;                 /* -errno with which reads fail, or 0 */
    uint64_t fail_offset, fail_len; /* of the bytes that reads fail for; all
                                     * bytes if fail_len is 0 */
    int fail_writes;
    bool is_held; /* no request starts before medium_release() */
    uint32_t held_count;
    struct medium_request held[HW_MEDIA_IO_IDS];
};

/** @param capacity_bytes  a multiple of 4096 */
void medium_init(struct medium *medium, uint64_t capacity_bytes);
void medium_end(struct medium *medium);

struct media_backend medium_backend(struct medium *medium);

/**
 * Take one request that has ended.
 * @return false when there is none
 */
MUST_USE bool medium_take_done(struct medium *medium, struct medium_done *done);

/** End the hold: the held requests are done now, in order. */
void medium_release(struct medium *medium);

/** Restore what the last flush left. */
void medium_power_cut(struct medium *medium);

#endif
