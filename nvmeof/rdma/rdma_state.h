/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Private state of the NVMe/RDMA binding.  Only the binding's own files include
 * it, and the owner of a struct rdma_transport, which needs the size.
 */
#ifndef ESSD_NVMEOF_RDMA_STATE_H
#define ESSD_NVMEOF_RDMA_STATE_H

#include "nvmeof/rdma/rdma_sgl.h"
#include "nvmeof/rdma/rdma_transport.h"

enum { RDMA_NO_CAPSULE = 0xffff };
_Static_assert((int)RDMA_CAPSULES < (int)RDMA_NO_CAPSULE,
               "a capsule number is 16 bits");

/* The states of a request. */
enum rdma_request_state {
    RDMA_REQUEST_FREE,       /* Unused; waits for a capsule. */
    RDMA_REQUEST_TARGET,     /* The target works on it, until it calls
                              * fetch(), send() or respond(). */
    RDMA_REQUEST_FETCH_ROOM, /* Waits for room in the send ring for a READ. */
    RDMA_REQUEST_FETCHING,   /* Waits for the completion of its READ. */
    RDMA_REQUEST_SEND_ROOM,  /* Waits for room in the send ring for a WRITE of
                              * one window of data. */
    RDMA_REQUEST_SENDING,    /* Waits for the completion of that WRITE. */
    RDMA_REQUEST_HELD, /* Its response waits until the host acknowledges an
                        * earlier one: its receive buffer cannot be posted again
                        * before. */
    RDMA_REQUEST_RESPOND_ROOM, /* Waits for room in the send ring for its
                                * response. */
    RDMA_REQUEST_RESPONDING,   /* Waits for the completion of its SEND. */
};

struct rdma_request {
    struct nvmf_transfer *nvmf;
    struct rdma_remote remote;
    struct rdma_queue *qp;
    struct rdma_request *next, *prev;  /* in qp->requests or free_requests */
    struct rdma_request *next_waiting; /* in the queue's list `waiting`, or in
                                        * its list `held` */
    uint16_t capsule; /* its receive buffer, or RDMA_NO_CAPSULE after that was
                       * posted again */
    uint8_t state;    /* enum rdma_request_state */
};

/* The states of a queue. */
enum rdma_queue_state {
    RDMA_QUEUE_FREE,   /* Unused; waits for a connection request. */
    RDMA_QUEUE_OPEN,   /* Takes capsules, until either side ends the
                        * connection. */
    RDMA_QUEUE_ENDING, /* The target has ended the connection; the queue waits
                        * until the host has acknowledged all responses, or
                        * until the target calls disconnect() again. */
    RDMA_QUEUE_FAILED, /* Waits for rdma_transport_step() to destroy its QP. */
    RDMA_QUEUE_DRAINING, /* Its QP is destroyed; the queue waits for the target
                          * to call drained(). */
    RDMA_QUEUE_DRAINED,  /* Waits for the end of rdma_transport_step(), which
                          * gives its memory back. */
};

struct rdma_queue {
    struct rdma_transport *rdma;
    uint32_t qpn;
    uint16_t number;        /* the target's number of this queue pair */
    uint16_t qid;           /* NVMe queue identifier; 0 is the admin queue */
    uint16_t depth;         /* entries of the SQ */
    uint16_t in_use;        /* requests in the list `requests` */
    uint16_t responding;    /* requests whose response is not acknowledged */
    uint16_t unacked;       /* those of them that are not in the list `held` */
    uint16_t first_capsule; /* list of this queue's capsule buffers */
    uint8_t state;          /* enum rdma_queue_state */
    uint8_t manager;        /* index of its connection manager */
    bool is_heard;          /* a capsule has arrived; it replaces a lost RTU */
    bool is_proven;         /* the peer has received the answer to its request,
                             * so it really is at its address */
    bool is_half_open;      /* it is in the list rdma->half_open */
    uint64_t answered_us;   /* time of the last data_acknowledged() call */
    uint64_t watched_us;    /* answered_us at the last check for silence */
    uint8_t silent_checks;  /* checks in a row that found the peer silent */
    bool needs_step;        /* it is in the list rdma->step_first */
    bool is_in_step;        /* step_qp() is running for it */
    struct rdma_request *requests;               /* all requests in use */
    struct rdma_request *waiting, *last_waiting; /* for room in the send ring */
    struct rdma_request *held, *last_held;       /* for an acknowledgement */
    struct rdma_queue *next_step;
    struct rdma_queue *next_half_open;
    uint64_t requested_us;        /* time of the request for it */
    struct rdma_cm_conn *conn;    /* NULL after its disconnect() */
    struct nvmf_conn_event event; /* the last one that was reported */
};

/* The half-open connections, the oldest first.  Others are taken out when the
 * list is searched. */
struct rdma_half_open {
    struct rdma_queue *first, **last;
    uint32_t evicted; /* since power-on */
};

/* A manager's first argument of conn_requested(). */
struct rdma_listener {
    struct rdma_transport *rdma;
    uint8_t manager; /* its index */
};

struct rdma_transport {
    struct rdma_transport_config config;
    struct rdma_listener listeners[RDMA_MANAGERS];
    struct nvmf_transport transport; /* the functions that the target calls */
    struct nvmf_transport direct;    /* the same without the relay */
    const struct rdma_relay *relay;  /* NULL: it is not used */
    uint32_t lkey;                   /* local key of the firmware's DRAM */
    uint64_t now_us;   /* time of the last rdma_transport_tick() */
    uint64_t watch_us; /* next check for silent peers; 0: nothing to check */
    struct rdma_request *free_requests;
    uint32_t requests_in_use;
    uint32_t responding; /* requests whose response is not acknowledged */
    uint32_t waiting;    /* requests that wait for room in a send ring, or for
                          * the acknowledgement of an earlier response */
    uint32_t sending;    /* requests whose WRITE of a window is not completed */
    uint32_t capsules_in_use;
    uint32_t qpairs_in_use;
    uint16_t free_capsule;         /* list of the unused capsule buffers */
    struct rdma_queue *step_first; /* QPs that need rdma_transport_step() */
    struct rdma_half_open half_open;
    struct rdma_queue qps[NVMF_MAX_QPAIRS]; /* by the target's number */
    uint16_t next_capsule[RDMA_CAPSULES];
    struct rdma_request requests[RDMA_REQUESTS];
};

/* ---- rdma_request.c: the commands of one QP. */

/** Put every request on the free list. */
void rdma_request_init(struct rdma_transport *rdma);

/** Post a capsule buffer.  The receive ring has room for all of a QP's. */
void rdma_request_post_capsule(struct rdma_queue *qp, uint16_t capsule);

/** The completion function of every QP of the binding. */
void rdma_request_completion(void *ctx, const struct verbs_wc *wc);

/* Three of the transport seam's functions. */
void rdma_request_fetch(void *ctx, struct nvmf_transfer *nvmf);
void rdma_request_send(void *ctx, struct nvmf_transfer *nvmf);
void rdma_request_respond(void *ctx, struct nvmf_transfer *nvmf);

/**
 * Complete every fetch(), send() and respond() that the target still waits for,
 * after the QP was destroyed.  Transfers that were not completed count as
 * failed.
 */
void rdma_request_fail_all(struct rdma_queue *qp);

/** Give back all requests of a QP, after the target has drained it. */
void rdma_request_release_all(struct rdma_queue *qp);

/* ---- rdma_relay.c */

/** verbs_qp_ops.is_plain: the queue takes I/O commands. */
bool rdma_relay_is_plain(const void *ctx);

/* ---- rdma_half_open.c: connections that their peers have not confirmed. */

void rdma_half_open_init(struct rdma_transport *rdma);

/** A request has been accepted: it is half-open, unless TCP carries it. */
void rdma_half_open_add(struct rdma_queue *qp);

/** Make room for a request: end the oldest half-open connection of its sender
 * if that has too many, or the oldest of all if there are too many. */
void rdma_half_open_limit(struct rdma_transport *rdma,
                          const struct rdma_cm_peer *peer);

/**
 * The drive is full: end the oldest half-open connection whose end makes room
 * for a request.
 *
 * @return false when there is none that may be ended
 */
MUST_USE bool rdma_half_open_evict(struct rdma_transport *rdma,
                                   const struct nvmf_qpair_params *params);

/* ---- rdma_transport.c */

/** End an open connection without waiting for the peer or for the next step. */
void rdma_queue_end_now(struct rdma_queue *qp);

/** Make the next rdma_transport_step() look at this queue. */
void rdma_queue_needs_step(struct rdma_queue *qp);

/** Tell connection management that the peer's first data has arrived.  Data
 * confirms the connection as an RTU does, which may be late or lost. */
void rdma_queue_heard(struct rdma_queue *qp);

/** The peer has received the answer to its request, or has proven its address
 * before. */
void rdma_queue_confirm(struct rdma_queue *qp);

/** Mark the connection as failed; the next step takes it down. */
void rdma_queue_fail(struct rdma_queue *qp);

#endif
