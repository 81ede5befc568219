/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The transport seam: requests, and what the target asks of its transports.
 *
 * What the target offers to a transport is in target.h.  A transport owns the
 * memory of its requests, one for each capsule buffer, and keeps the host's
 * data descriptor (for RDMA: the keyed SGL) beside each; the target never sees
 * an address or a key.
 */
#ifndef ESSD_NVMEOF_TARGET_TRANSPORT_H
#define ESSD_NVMEOF_TARGET_TRANSPORT_H

#include "lib/trace.h"
#include "nvmeof/limits.h"
#include "nvmeof/target/piece.h"
#include "nvmeof/wire/cqe.h"
#include "nvmeof/wire/discovery.h"
#include "nvmeof/wire/sqe.h"

/* What a request does. */
enum nvmf_request_state {
    NVMF_REQUEST_FREE,        /* Holds no command; belongs to the transport. */
    NVMF_REQUEST_EXECUTING,   /* Runs inside a call of the target. */
    NVMF_REQUEST_WAIT_BUFFER, /* Waits for data buffers, in arrival order. */
    NVMF_REQUEST_FETCHING,    /* Waits for nvmf_request_fetched(). */
    NVMF_REQUEST_WAIT_MEDIA,  /* Waits for room at the media, in order. */
    NVMF_REQUEST_MEDIA,       /* Waits for nvmf_media_done(). */
    NVMF_REQUEST_AER,         /* Waits for an event to report. */
    NVMF_REQUEST_SENDING,     /* Waits for nvmf_request_sent(). */
    NVMF_REQUEST_RESPONDING,  /* Waits for nvmf_request_done(). */
    NVMF_REQUEST_STATES
};

struct nvmf_command;

/* What the transport found in the command's data descriptor (SGL1). */
struct nvmf_data {
    uint32_t len_bytes; /* what the descriptor describes; 0 for none */
    uint16_t status;    /* enum nvme_status, 0 if acceptable.  Reported only
                         * if the command moves data */
    struct nvmf_piece
        in_capsule;          /* the data itself, where it came with the
                              * command (then len_bytes long); else
                              * ptr is NULL.  Lives as long as the request */
    struct nvmf_piece spare; /* memory that nobody else uses until the response,
                              * for Connect, which should not have to wait for a
                              * buffer.  len_bytes 0: none */
};

/*
 * One command.  Data for which there are too few buffers at once moves in
 * several windows, one after the other through the same buffers: fetch() and
 * media, or media and send(), and respond() with the last one.  Embed it in the
 * transport's own request (container_of() leads back) and hand it in zeroed the
 * first time.  From nvmf_capsule() to nvmf_request_done(), or until the queue
 * pair is drained, it is the target's.
 */
struct nvmf_request {
    /* For the transport to read, in fetch() and respond(). */
    uint16_t qpair;
    uint8_t state; /* enum nvmf_request_state */
    uint8_t piece_count;
    uint32_t number;      /* what traces call it; the transport sets it once */
    uint32_t data_offset; /* where this window begins in the host's data */
    uint32_t fetch_len;   /* fetch(): bytes to bring into pieces */
    uint32_t send_len;    /* send(), respond(): bytes to send from pieces; may
                           * be 0 in respond() */
    struct nvmf_piece pieces[NVMF_MAX_PIECES];
    uint8_t cqe[NVME_CQE_LEN]; /* respond(): the response capsule */

    /* The target's own. */
    bool owns_buffers;       /* pieces are to be put() */
    uint8_t owned_count;     /* how many: piece_count, but in a last window */
    uint8_t owner;           /* and whose they are */
    bool is_unlogged;        /* its refusal is no entry of the error log */
    uint16_t error_location; /* of a bad field: byte in 7:0, bit in 10:8 */
    uint16_t progress;       /* media operations done, of steps */
    uint16_t steps;
    uint32_t data_len;   /* bytes the command moves */
    uint32_t window_len; /* bytes of them that this window moves */
    uint32_t room_len;   /* bytes that its buffers hold */
    uint32_t result[2];  /* dwords 0 and 1 of the CQE */
    uint32_t shutdown;   /* Property Set: number of the shutdown it began */
    const struct nvmf_command *command;
    const struct nvmf_data *data; /* during nvmf_capsule() only */
    struct nvme_sqe sqe;
    struct nvmf_request *next;
    const struct trace *trace; /* NULL: nobody wants to know of it */
    uint64_t entered_us;       /* these two: only while traced */
    uint32_t stage_us[NVMF_REQUEST_STATES]; /* time spent in each state */
};

/*
 * One transport.  The target may have several at the same time: each queue pair
 * points to the one that it was reserved with, so this struct must outlive all
 * queue pairs of the transport.
 *
 * None of the functions may call back into the target before it returns.
 */
struct nvmf_transport {
    void *ctx;      /* handed to every function below */
    uint8_t trtype; /* enum nvme_trtype: what logs call the transport */
    uint32_t sgls;  /* descriptors that it reads: bits of Identify SGLS */
    uint32_t in_capsule_len; /* data in an I/O command's capsule, bytes; it
                              * begins right after the SQE; 0: none */

    /**
     * Bring req->fetch_len bytes from the host into req->pieces, from
     * req->data_offset on of what the command's descriptor describes (RDMA: a
     * READ).  The transport calls nvmf_request_fetched() afterwards, also if
     * the queue pair fails.  Never called for data in the capsule.
     */
    void (*fetch)(void *ctx, struct nvmf_request *req);

    /**
     * Send req->send_len bytes from req->pieces to the host, to
     * req->data_offset of what the command's descriptor describes (RDMA: a
     * WRITE).  More data follows before the response.  The transport calls
     * nvmf_request_sent() when the pieces are free again, also if the queue
     * pair fails.
     */
    void (*send)(void *ctx, struct nvmf_request *req);

    /**
     * Send req->send_len bytes from req->pieces to req->data_offset, then
     * req->cqe.  The transport calls nvmf_request_done() when the peer has
     * acknowledged both, or when the queue pair has failed.  (RDMA: a WRITE and
     * a SEND, with invalidate if the descriptor asked for it, as one linked
     * pair.)
     */
    void (*respond)(void *ctx, struct nvmf_request *req);

    /**
     * End this queue pair's connection after the responses given to respond()
     * so far have been sent.  The transport calls nvmf_qpair_closed() then, as
     * after every other end of a connection.  When that takes too long, the
     * target calls disconnect() once more: the transport must then end the
     * connection without waiting for the peer.
     */
    void (*disconnect)(void *ctx, uint16_t qpair);

    /**
     * The target no longer uses a queue pair whose nvmf_qpair_closed() returned
     * false.  It holds none of its requests, the next nvmf_qpair_reserve() may
     * return the same number, and its share of the budget is free.  Called from
     * inside whichever nvmf_ function ended the last request.
     */
    void (*drained)(void *ctx, uint16_t qpair);
};

#endif
