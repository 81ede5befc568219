/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The inside of the NVMe/RDMA binding: for its own files, and for the owner of
 * struct rdma_transport, who needs its size.
 */
#ifndef ESSD_NVMEOF_RDMA_STATE_H
#define ESSD_NVMEOF_RDMA_STATE_H

#include "nvmeof/rdma/rdma_bufs.h"
#include "nvmeof/rdma/rdma_sgl.h"
#include "nvmeof/rdma/rdma_transport.h"

enum { RDMA_NO_CAPSULE = 0xffff };
_Static_assert((int)RDMA_CAPSULES < (int)RDMA_NO_CAPSULE,
               "a capsule number is 16 bits");

/* What a request does. */
enum rdma_request_state {
    RDMA_REQUEST_FREE,         /* Unused; waits for a capsule. */
    RDMA_REQUEST_TARGET,       /* The target works on it, until fetch(), send()
                                * or respond(). */
    RDMA_REQUEST_FETCH_ROOM,   /* Waits for room in the send ring, to READ. */
    RDMA_REQUEST_FETCHING,     /* Waits for the completion of the READ. */
    RDMA_REQUEST_SEND_ROOM,    /* Waits for room, to WRITE a window of data. */
    RDMA_REQUEST_SENDING,      /* Waits for the completion of that WRITE. */
    RDMA_REQUEST_RESPOND_ROOM, /* Waits for room in the send ring, to respond.
                                */
    RDMA_REQUEST_RESPONDING,   /* Waits for the completion of the SEND. */
};

struct rdma_request {
    struct nvmf_request nvmf;
    struct rdma_remote remote;
    struct rdma_queue *qp;
    struct rdma_request *next, *prev;  /* of the QP, or free */
    struct rdma_request *next_waiting; /* for room in the send ring */
    uint16_t capsule; /* held, RDMA_NO_CAPSULE once posted again */
    uint8_t state;    /* enum rdma_request_state */
};

/* What a queue does. */
enum rdma_queue_state {
    RDMA_QUEUE_FREE,     /* Unused; waits for a connection request. */
    RDMA_QUEUE_OPEN,     /* Accepted: takes capsules, until either side ends the
                          * connection. */
    RDMA_QUEUE_ENDING,   /* The target has ended it: waits until the responses
                          * are acknowledged, or disconnect() comes again. */
    RDMA_QUEUE_FAILED,   /* Waits for rdma_transport_step(), which destroys its
                          * QP. */
    RDMA_QUEUE_DRAINING, /* Its QP is destroyed: waits for the target's
                          * drained(). */
    RDMA_QUEUE_DRAINED,  /* Waits for the end of rdma_transport_step(), which
                          * gives its memory back. */
};

struct rdma_queue {
    struct rdma_transport *rdma;
    uint32_t qpn;
    uint16_t number; /* the target's name for it */
    uint16_t qid;
    uint16_t depth;
    uint16_t posted;     /* receive buffers at the RNIC */
    uint16_t in_use;     /* requests */
    uint16_t responding; /* of those, responses given and not acknowledged */
    uint16_t first_capsule;
    uint8_t state;        /* enum rdma_queue_state */
    bool is_heard;        /* a capsule has come: as good as an RTU */
    uint64_t answered_us; /* when the CM was told that the peer answers */
    bool needs_step;
    bool is_in_step;
    struct rdma_request *requests;
    struct rdma_request *waiting, *last_waiting;
    struct rdma_queue *next_step;
    struct rdma_cm_conn *conn;    /* NULL after its disconnect() */
    struct rdma_conn_event event; /* the last that was reported */
};

struct rdma_transport {
    struct rdma_transport_config config;
    struct nvmf_transport transport; /* what the target calls */
    uint32_t lkey;
    uint64_t now_us;
    struct rdma_request *free_requests;
    uint32_t requests_in_use;
    uint32_t responding; /* of all QPs */
    uint32_t waiting;    /* requests, for room in a send ring */
    uint32_t sending;    /* requests whose next window waits for a WRITE */
    uint32_t capsules_in_use;
    uint32_t qpairs_in_use;
    uint16_t free_capsule;
    struct rdma_queue *step_first; /* QPs that need rdma_transport_step() */
    struct rdma_bufs bufs;
    struct rdma_queue qps[NVMF_MAX_QPAIRS]; /* by the target's number */
    uint16_t next_capsule[RDMA_CAPSULES];
    struct rdma_request requests[RDMA_REQUESTS];
};

/* ---- rdma_request.c: commands on their way through one QP. */

/** Put every request on the free list. */
void rdma_request_init(struct rdma_transport *rdma);

/** Post a capsule buffer; the receive ring has room for all of a QP's. */
void rdma_request_post_capsule(struct rdma_queue *qp, uint16_t capsule);

/** The completion function of every QP of the binding. */
void rdma_request_completion(void *ctx, const struct verbs_wc *wc);

/* Three of the transport seam's functions. */
void rdma_request_fetch(void *ctx, struct nvmf_request *nvmf);
void rdma_request_send(void *ctx, struct nvmf_request *nvmf);
void rdma_request_respond(void *ctx, struct nvmf_request *nvmf);

/** The RNIC is done with the QP: answer what the target still waits for. */
void rdma_request_fail_all(struct rdma_queue *qp);

/** The target is done with the QP: give its requests back. */
void rdma_request_release_all(struct rdma_queue *qp);

/* ---- rdma_transport.c */

/** Have the QP looked at by rdma_transport_step(). */
void rdma_queue_needs_step(struct rdma_queue *qp);

/** The peer's first data is here, though its RTU may not be. */
void rdma_queue_heard(struct rdma_queue *qp);

/** The connection is of no use any more: take it down at the next step. */
void rdma_queue_fail(struct rdma_queue *qp);

#endif
