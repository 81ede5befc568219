/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The seam between an RDMA engine and the byte streams that carry it: iWARP on
 * the connections of a TCP offload engine.
 *
 * A stream begins as one that firmware reads and writes.  attach() hands it
 * over to a queue pair: from then on, received bytes go to the engine, and the
 * bytes to send come from it.  What firmware has sent before, or sends before
 * the queue pair is in RTS, leaves before the first byte of the engine.
 *
 * Neither side keeps a copy of bytes to send: they are fetched from the engine
 * again when they are sent again.  Received bytes are kept by the owner of the
 * streams, in the ring that firmware gave for them, until receive() has taken
 * them.
 *
 * Both sides run in one execution context.  The functions of struct
 * rdma_stream_user are called from inside the owner of the streams, and must
 * call none of struct rdma_streams, but for those that say so.  Functions of
 * struct rdma_streams call none of struct rdma_stream_user.
 */
#ifndef ESSD_NET_VERBS_STREAM_H
#define ESSD_NET_VERBS_STREAM_H

#include "lib/util.h"

/* A piece of memory.  Bytes to send are valid until the engine is called again,
 * received ones during the call. */
struct rdma_stream_piece {
    const uint8_t *data;
    uint32_t len_bytes;
};

enum { RDMA_STREAM_PIECES = 4 };

/* How a stream has ended. */
enum rdma_stream_end {
    RDMA_STREAM_CLOSED,    /* both sides have sent and received everything */
    RDMA_STREAM_RESET,     /* by either side */
    RDMA_STREAM_TIMED_OUT, /* the peer does not answer */
    RDMA_STREAM_LOST,      /* a memory error, or the machine was loaded */
};

/* What the owner of the streams provides; `stream` is its number. */
struct rdma_streams {
    void *ctx;

    /**
     * Give a stream to the queue pair in this slot.
     *
     * @param ring_bytes  out: most bytes that wait until receive() takes them
     * @return false when nothing has happened: the stream is not open in both
     *         directions, or belongs to a queue pair, or firmware has not given
     *         back all received bytes
     */
    bool (*attach)(void *ctx, uint32_t stream, uint32_t slot,
                   uint32_t *ring_bytes);

    /**
     * Take a stream from its queue pair: no function of struct
     * rdma_stream_user is called for it any more.  Bytes that come later are
     * dropped.  If bytes that were announced have not been acknowledged, the
     * stream is reset.
     */
    void (*detach)(void *ctx, uint32_t stream);

    /**
     * Announce this many more bytes to send.  They are fetched soon, and again
     * until they are acknowledged.
     *
     * @return false when the stream takes no more bytes: it has ended, or was
     *         closed
     */
    bool (*send)(void *ctx, uint32_t stream, uint32_t len_bytes);

    /** Close the stream after all bytes announced so far. */
    void (*close)(void *ctx, uint32_t stream);

    /** End it at once. */
    void (*abort)(void *ctx, uint32_t stream);

    /** The longest run of bytes that one segment carries now.  May be called
     * from inside struct rdma_stream_user's functions. */
    uint16_t (*segment_bytes)(void *ctx, uint32_t stream);
};

/* What the engine provides; `slot` is that of the queue pair. */
struct rdma_stream_user {
    void *ctx;

    /**
     * Take received bytes.
     *
     * @param pieces  all bytes that were not taken yet, in order: for example
     *                two pieces of a ring that wraps, and a segment that has
     *                just come.  1 to RDMA_STREAM_PIECES of them
     * @return how many were taken.  The others are offered again together with
     *         the next ones, and not before.
     */
    uint32_t (*receive)(void *ctx, uint32_t slot,
                        const struct rdma_stream_piece *pieces,
                        unsigned int count);

    /**
     * Find bytes that send() has announced.  An answer ends where a frame of
     * the engine ends, if it can, so that segments hold whole frames.
     *
     * @param offset  of the first one; the first byte announced after attach()
     *                has offset 0
     * @param pieces  RDMA_STREAM_PIECES of them
     * @return their number; fewer bytes than `len_bytes` if more pieces were
     *         needed.  0: the bytes are lost (an error of the memory), and the
     *         stream is reset
     */
    unsigned int (*fetch)(void *ctx, uint32_t slot, uint64_t offset,
                          uint32_t len_bytes, struct rdma_stream_piece *pieces);

    /** The peer has these further bytes: they are not fetched again. */
    void (*acked)(void *ctx, uint32_t slot, uint32_t len_bytes);

    /** The peer sends nothing more: everything has been delivered. */
    void (*finished)(void *ctx, uint32_t slot);

    /** The stream does not exist any more; detach() need not be called. */
    void (*ended)(void *ctx, uint32_t slot, enum rdma_stream_end end);
};

#endif
