/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The transport seam: requests, and what the target asks of its transport.
 *
 * What the target offers to the transport is in target.h.  A transport owns the
 * memory of its requests, one for each capsule buffer, and keeps the host's
 * data descriptor (for RDMA: the keyed SGL) beside each; the target never sees
 * an address or a key.
 */
#ifndef ESSD_NVMEOF_TARGET_TRANSPORT_H
#define ESSD_NVMEOF_TARGET_TRANSPORT_H

#include "nvmeof/limits.h"
#include "nvmeof/target/piece.h"
#include "nvmeof/wire/cqe.h"
#include "nvmeof/wire/sqe.h"

/* What a request waits for. */
enum nvmf_request_state {
    NVMF_REQUEST_FREE,        /* the transport's: no command in it */
    NVMF_REQUEST_EXECUTING,   /* inside a call of the target */
    NVMF_REQUEST_WAIT_BUFFER, /* data buffers, in order of arrival */
    NVMF_REQUEST_FETCHING,    /* nvmf_request_fetched() */
    NVMF_REQUEST_WAIT_MEDIA,  /* room at the media, in order of arrival */
    NVMF_REQUEST_MEDIA,       /* nvmf_media_done() */
    NVMF_REQUEST_AER,         /* an event to report */
    NVMF_REQUEST_RESPONDING,  /* nvmf_request_done() */
    NVMF_REQUEST_STATES
};

struct nvmf_command;

/* What the transport found in the command's data descriptor (SGL1). */
struct nvmf_data {
    uint32_t len_bytes; /* what the descriptor describes; 0 for none */
    uint16_t status;    /* enum nvme_status, 0 if acceptable.  Reported only
                         * if the command moves data */
    struct nvmf_piece
        in_capsule; /* the data itself, where it came with the
                     * command (then len_bytes long); else
                     * ptr is NULL.  Lives as long as the request */
};

/*
 * One command.  Embed it in the transport's own request (container_of() leads
 * back) and hand it in zeroed the first time.  From nvmf_capsule() to
 * nvmf_request_done(), or until the queue pair is drained, it is the target's.
 */
struct nvmf_request {
    /* For the transport to read, in fetch() and respond(). */
    uint16_t qpair;
    uint8_t state; /* enum nvmf_request_state */
    uint8_t piece_count;
    uint32_t fetch_len; /* fetch(): bytes to bring into pieces */
    uint32_t send_len;  /* respond(): bytes to send from pieces; may be 0 */
    struct nvmf_piece pieces[NVMF_MAX_PIECES];
    uint8_t cqe[NVME_CQE_LEN]; /* respond(): the response capsule */

    /* The target's own. */
    bool owns_buffers;       /* pieces are to be put() */
    uint16_t error_location; /* of a bad field: byte in 7:0, bit in 10:8 */
    uint16_t progress;       /* media operations done, of steps */
    uint16_t steps;
    uint32_t data_len;  /* bytes the command moves */
    uint32_t result[2]; /* dwords 0 and 1 of the CQE */
    uint32_t shutdown;  /* Property Set: number of the shutdown it began */
    const struct nvmf_command *command;
    struct nvmf_data data;
    struct nvme_sqe sqe;
    struct nvmf_request *next;
};

/*
 * None of these calls back into the target before it returns.
 */
struct nvmf_transport {
    void *ctx;

    /**
     * Bring the host's data (RDMA READ): the first req->fetch_len bytes of
     * what the command's descriptor describes, into req->pieces.  Answered by
     * nvmf_request_fetched(), also if the queue pair fails meanwhile.  Never
     * called for data in the capsule.
     */
    void (*fetch)(void *ctx, struct nvmf_request *req);

    /**
     * Send req->send_len bytes from req->pieces to the host (RDMA WRITE), then
     * req->cqe (SEND, with invalidate if the descriptor asked), as one linked
     * pair.  Answered by nvmf_request_done() when the peer has acknowledged
     * both, or when the queue pair failed.
     */
    void (*respond)(void *ctx, struct nvmf_request *req);

    /**
     * End this queue pair's connection once responses given to respond()
     * so far are out.  nvmf_qpair_closed() follows, as after every other end of
     * a connection.  When that takes too long it is called once more: then the
     * end must not wait for the peer any longer.
     */
    void (*disconnect)(void *ctx, uint16_t qpair);

    /**
     * The target has let go of a queue pair whose nvmf_qpair_closed() returned
     * false: no request of it is known here any more, the number may come back
     * from the next nvmf_qpair_reserve(), and its share of the budget is free.
     * Called from within whichever nvmf_ function ended the last request.
     */
    void (*drained)(void *ctx, uint16_t qpair);
};

#endif
