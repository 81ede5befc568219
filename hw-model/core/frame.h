/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ethernet frames in transit through the hardware, in bursts.
 *
 * Ports, the RNIC and the link back-ends pass arrays of frames to each other.
 * A call may have any number of frames.
 */
#ifndef ESSD_HW_CORE_FRAME_H
#define ESSD_HW_CORE_FRAME_H

#include <string.h>

#include "lib/util.h"

enum {
    FRAME_HEAD_MAX = 160, /* Ethernet header to last RoCE header */
    FRAME_PIECES_MAX = 6,
    FRAME_TAIL_MAX = 8, /* pad and ICRC */
    FRAME_MTU_MAX = 9000,
    FRAME_LEN_MAX = 14 + 4 + FRAME_MTU_MAX, /* without FCS */
};

enum frame_flags {
    FRAME_BAD_FCS = 1,   /* on native links only: sockets carry no FCS */
    FRAME_RUNT = 2,      /* shorter than 60 bytes on the wire */
    FRAME_CORRECTED = 4, /* FEC corrected errors in it */
};

struct frame_piece {
    const void *data;
    uint32_t len_bytes;
};

/* A frame to send, without FCS: head, then pieces (in DRAM), then tail. */
struct frame_tx {
    uint64_t departure_ns; /* earliest virtual time to send it; 0: at once */
    uint8_t priority;      /* 802.1p priority, 0..7 */
    uint8_t flags;         /* enum frame_flags */
    uint8_t tail_len;
    uint8_t num_pieces;
    uint16_t head_len;
    uint8_t head[FRAME_HEAD_MAX];
    struct frame_piece pieces[FRAME_PIECES_MAX];
    uint8_t tail[FRAME_TAIL_MAX];
};

static inline uint32_t frame_tx_len(const struct frame_tx *frame)
{
    uint32_t len = (uint32_t)frame->head_len + frame->tail_len;

    for (unsigned int i = 0; i < frame->num_pieces; i++) {
        len += frame->pieces[i].len_bytes;
    }
    return len;
}

/**
 * Copy the parts of a frame to one contiguous buffer.
 *
 * @param to  has room for frame_tx_len() bytes
 * @return frame_tx_len()
 */
static inline uint32_t frame_tx_copy(uint8_t *to, const struct frame_tx *frame)
{
    uint8_t *at = to;

    memcpy(at, frame->head, frame->head_len);
    at += frame->head_len;
    for (unsigned int i = 0; i < frame->num_pieces; i++) {
        memcpy(at, frame->pieces[i].data, frame->pieces[i].len_bytes);
        at += frame->pieces[i].len_bytes;
    }
    memcpy(at, frame->tail, frame->tail_len);
    return (uint32_t)(at - to) + frame->tail_len;
}

/**
 * Receives bursts of frames. send() takes the first n frames, reads them before
 * it returns, and returns n.  If n is less than `count`, there was no more
 * room: the caller keeps the rest until the sink's owner reports room.
 */
struct frame_sink {
    void *ctx;
    unsigned int (*send)(void *ctx, const struct frame_tx *burst,
                         unsigned int count);

    /*
     * Bitmap of paused priorities: frames of these must not be offered, because
     * they would block the others.  The owner reports each change as it reports
     * room.  NULL: this sink never pauses a priority.
     */
    const uint8_t *paused;
};

/* A received frame: contiguous, without FCS, valid only during the call. */
struct frame_rx {
    const uint8_t *data;
    uint32_t len_bytes;
    uint8_t flags; /* enum frame_flags */
};

#endif
