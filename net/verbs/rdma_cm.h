/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The seam between connection management and its users.
 *
 * A user of reliable connections (the NVMe/RDMA binding, the echo service) sees
 * a connection manager only through this header.  net/cm implements it with
 * InfiniBand's management datagrams for RoCE; a manager for iWARP (MPA over
 * TCP) can stand beside it.
 *
 * The calls of a user:
 *   ops->listen()
 *   events->request: create a QP, move it to INIT, post receive buffers,
 *       ops->start_qp(), ops->accept(); or ops->reject()
 *   events->established ... events->disconnected
 *   destroy the QP, ops->disconnect()
 *
 * Context: the main loop of one hart.  Events are delivered from verbs_poll()
 * or from the manager's own step, and by data_received(), never from inside
 * another call of the user.
 */
#ifndef ESSD_NET_VERBS_RDMA_CM_H
#define ESSD_NET_VERBS_RDMA_CM_H

#include "lib/util.h"

/* A peer's address.  Two addresses are equal when all bytes are equal.  Their
 * format is the manager's. */
struct rdma_cm_peer {
    uint8_t bytes[16];
};

/*
 * One connection.  The manager embeds this struct in its own and sets `ops`.
 * `events` and `ctx` are the listener's until the user sets others.
 */
struct rdma_cm_conn {
    const struct rdma_cm_ops *ops;
    const struct rdma_cm_events *events;
    void *ctx; /* first argument of the events */
};

/* A peer's request for a connection; valid during events->request only. */
struct rdma_cm_request {
    struct rdma_cm_peer peer;
    uint8_t laddr;         /* index of the local address that the peer used */
    uint8_t max_rd_atomic; /* READs from us that the peer can serve at once */
    uint8_t max_dest_rd_atomic;  /* READs that the peer wants to have
                                  * outstanding */
    const uint8_t *private_data; /* the user's part of the request */
    size_t private_len;
};

struct rdma_cm_events {
    /** A peer requests a connection: call accept() or reject(). */
    void (*request)(void *ctx, struct rdma_cm_conn *conn,
                    const struct rdma_cm_request *request);

    /** The peer has confirmed the connection, or has sent data on it. */
    void (*established)(void *ctx, struct rdma_cm_conn *conn);

    /** The connection has ended: call disconnect() after the QP is destroyed.
     */
    void (*disconnected)(void *ctx, struct rdma_cm_conn *conn);
};

/* Why a user refuses a request. */
enum rdma_cm_reject {
    RDMA_CM_REJECT_USER, /* the private data has the reason */
    RDMA_CM_REJECT_NO_SERVICE,
    RDMA_CM_REJECT_NO_RESOURCES,
};

enum { RDMA_CM_PRIVATE_MAX = 56 }; /* bytes of private data of an answer */

struct rdma_cm_ops {
    /**
     * Take requests for a service port.
     *
     * @return false when no listener is free, or the port has one already
     */
    bool (*listen)(void *cm, uint16_t port, const struct rdma_cm_events *events,
                   void *ctx);

    /**
     * Move a QP from INIT to the state in which it sends and receives, with the
     * path to the peer of the request.  Waits for the RNIC.
     *
     * @param access              enum verbs_access bits for the peer
     * @param max_dest_rd_atomic  READs of the peer that the QP serves at once
     * @return false when the RNIC refused
     */
    bool (*start_qp)(struct rdma_cm_conn *conn, uint32_t qpn,
                     unsigned int access, uint8_t max_dest_rd_atomic);

    /** Accept the request.  The QP must have been started. */
    void (*accept)(struct rdma_cm_conn *conn, uint32_t qpn,
                   const void *private_data, size_t len);

    /** Refuse the request.  The connection must not be used after this. */
    void (*reject)(struct rdma_cm_conn *conn, enum rdma_cm_reject reason,
                   const void *private_data, size_t len);

    /**
     * Release an accepted connection, and end it unless the peer has ended it
     * already.  The manager disconnects the peer without the user: no event
     * follows, and the connection must not be used after this call.
     */
    void (*disconnect)(struct rdma_cm_conn *conn);

    /** The QP has received data, which replaces a confirmation of the peer that
     * is still missing: events->established may be called at once. */
    void (*data_received)(struct rdma_cm_conn *conn);

    /** The peer has acknowledged data that was sent on the QP, so the path to
     * it works.  One call a second is often enough. */
    void (*data_acknowledged)(struct rdma_cm_conn *conn);
};

/* A connection manager, as its users get it. */
struct rdma_cm {
    const struct rdma_cm_ops *ops;
    void *cm; /* for ops->listen() */
};

#endif
