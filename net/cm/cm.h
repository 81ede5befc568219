/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connection manager: makes and ends reliable connections by exchanging
 * management datagrams over the UD queue pair 1.  Passive side (listen, accept)
 * and active side (connect) in one.
 * Spec: IBTA Vol 1 chapter 12; annex A11 (RDMA IP CM service) for addresses.
 *
 * The calls of a user:
 *  passive: ops.request -> cm_qp_attr(), move the QP to RTS, cm_accept()
 *           -> ops.established ... ops.disconnected -> destroy QP, cm_release()
 *  active:  cm_connect() -> ops.replied -> cm_qp_attr(), move the QP to RTS,
 *           cm_confirm() ... ops.disconnected -> destroy QP, cm_release()
 *
 * Context: the main loop of one hart.  Time, randomness and memory are handed
 * in.  Messages are posted with verbs_post_send(): the caller's verbs_flush()
 * sends them.
 *
 * Left out: alternate paths (LAP, APR), SIDR, redirection, unreliable and
 * datagram transports, RDMA port spaces other than TCP.
 */
#ifndef ESSD_NET_CM_CM_H
#define ESSD_NET_CM_CM_H

#include "lib/trace.h"
#include "lib/util.h"
#include "net/verbs/rdma_cm.h"
#include "net/verbs/verbs.h"
#include "net/wire/cm_msg.h"
#include "net/wire/ip_addr.h"
#include "net/wire/mad.h"

enum {
    CM_CONNS = 2048, /* 1024 live ones, and 1024 in TIMEWAIT */
    CM_LISTENERS = 4,
    CM_SEND_BUFFERS = 256,
    CM_RECV_BUFFERS = 512,
    CM_PRIVATE_MAX = 56, /* private data of a sent message: all that fits
                          * after the IP header of a REQ */

    /* Bytes of DRAM that cm_init() needs, 64-byte aligned. */
    CM_MEMORY_LEN = CM_SEND_BUFFERS * MAD_LEN +
                    CM_RECV_BUFFERS * (VERBS_UD_HEADER + MAD_LEN),
};
#define CM_NO_DEADLINE UINT64_MAX
/* How long an answer of the peer proves that the path to it works.  Hosts send
 * Keep Alive commands more often than this. */
#define CM_REACHED_US UINT64_C(120000000)

struct cm;
struct cm_conn;

/* States of a connection. */
enum cm_conn_state {
    CM_CONN_FREE,        /* Unused. */
    CM_CONN_REQ_SENT,    /* Active: REQ sent; waits for REP or REJ. */
    CM_CONN_REP_RCVD,    /* Active: waits for cm_confirm() or cm_reject(). */
    CM_CONN_REQ_RCVD,    /* Passive: waits for cm_accept() or cm_reject(). */
    CM_CONN_REP_SENT,    /* Passive: REP sent; waits for RTU or data. */
    CM_CONN_ESTABLISHED, /* Live until either side sends a DREQ. */
    CM_CONN_DREQ_SENT,   /* DREQ sent; waits for DREP. */
    CM_CONN_TIMEWAIT, /* Ended; absorbs late messages, waits for cm_release().
                       */
    CM_CONN_STATES,
};

/* A request as the user sees it; valid during ops.request only. */
struct cm_request {
    uint64_t service_id;
    struct ip_addr peer_ip;
    struct ip_addr local_ip;
    uint16_t peer_port;
    uint8_t laddr;               /* index of the own address */
    uint8_t path_mtu;            /* enum ib_mtu */
    uint8_t responder_resources; /* READs that the peer can serve at once */
    uint8_t initiator_depth;     /* READs that the peer wants to issue */
    uint64_t peer_ca_guid;
    const uint8_t *private_data; /* the part after the IP header */
    size_t private_len;          /* always 56: the field's length */
};

enum cm_end_reason {
    CM_END_DREQ,    /* the peer disconnected */
    CM_END_DREP,    /* the peer confirmed our cm_disconnect() */
    CM_END_TIMEOUT, /* the peer did not answer */
    CM_END_REJ,     /* the peer refused; see rej_reason and private_data */
    CM_END_STALE,   /* the peer restarted: a new REQ reuses its QP number */
};

/* Why a connection ended; valid during ops.disconnected only. */
struct cm_end {
    enum cm_end_reason reason;
    uint16_t rej_reason;         /* enum cm_rej_reason */
    const uint8_t *private_data; /* of the REJ; otherwise NULL */
    size_t private_len;
};

/*
 * The callbacks of a user.  They are called from verbs_poll() or cm_poll(),
 * never from inside a call of the user.  request gets the listener's `ctx`; the
 * others get the connection's, which is the listener's until cm_set_ctx().
 */
struct cm_ops {
    /* Passive: a REQ has arrived.  Call cm_accept() or cm_reject(), now or
     * later. */
    void (*request)(void *ctx, struct cm_conn *conn,
                    const struct cm_request *request);
    /* Active: the peer's REP has arrived.  Call cm_confirm() or cm_reject(). */
    void (*replied)(void *ctx, struct cm_conn *conn,
                    const uint8_t *private_data, size_t private_len);
    /* Passive: RTU or data has arrived. */
    void (*established)(void *ctx, struct cm_conn *conn);
    /*
     * The connection has ended; nothing more is called for `conn`.  Call
     * cm_release() when the QP is destroyed, here or later.
     */
    void (*disconnected)(void *ctx, struct cm_conn *conn,
                         const struct cm_end *end);
};

/* The path to a peer. */
struct cm_path {
    uint16_t neigh;   /* neighbour index */
    uint8_t laddr;    /* local address index */
    bool is_v1;       /* RoCE v1 */
    uint8_t priority; /* 802.1p of the connection's packets and messages */
    uint8_t dscp;     /* DSCP of these; an answer has that of the REQ */
    uint8_t mtu;      /* enum ib_mtu: the largest that the port carries */
};

enum cm_path_result {
    CM_PATH_READY,
    CM_PATH_FULL, /* no entry is free while all others are pinned */
    CM_PATH_NONE, /* no path leads to the sender */
};

/* The functions of the neighbour table that the connection manager needs. */
struct cm_path_ops {
    /**
     * Find the path for the answer to a message from `from`.  Its source MAC
     * tells the neighbour's, so there is nothing to wait for.
     *
     * On CM_PATH_FULL, connections in TIMEWAIT are freed to make room.  If
     * there are none, and on CM_PATH_NONE, the message is dropped.
     */
    enum cm_path_result (*resolve)(void *ctx, const struct verbs_ud_info *from,
                                   struct cm_path *path);
    /* While an index is pinned (pins are counted), it names the same
     * neighbour. */
    void (*pin)(void *ctx, uint16_t neigh);
    void (*unpin)(void *ctx, uint16_t neigh);
};

struct cm_config {
    struct verbs *verbs;
    const struct cm_path_ops *path_ops;
    void *path_ctx;
    uint8_t *memory;      /* CM_MEMORY_LEN bytes of DRAM */
    uint64_t ca_guid;     /* unique to the drive, constant, not 0 */
    uint32_t generation;  /* boot counter, so that ids of two boots differ */
    uint64_t random_seed; /* for hashes; without random, for ids, too */
    /*
     * Fill a buffer with random bytes that nobody can predict, from which
     * communication ids and starting PSNs are made.  NULL: they follow from
     * random_seed.
     */
    void (*random)(void *ctx, uint8_t *buf, size_t len);
    void *random_ctx;
    uint8_t initiator_depth;     /* limit of our outstanding READs, 1..128 */
    uint8_t responder_resources; /* limit of the peer's READs, 0..16 */
    uint8_t response_timeout;    /* active; ib_time code; 0 means 20 (4.3 s) */
    uint8_t max_retries;         /* active; 0..15 */
    const struct trace *trace; /* must outlive the manager; NULL for no trace */
};

struct cm_counters {
    uint64_t received[8]; /* REQ, MRA, REJ, REP, RTU, DREQ, DREP */
    uint64_t sent[8];
    uint64_t bad_mad;       /* too short, wrong base version, invalid field */
    uint64_t bad_class;     /* unknown class, class version or method */
    uint64_t bad_attribute; /* unknown message type */
    uint64_t unexpected;    /* wrong for the state, or of no connection */
    uint64_t duplicates;    /* REQs and REPs answered again */
    uint64_t stale;         /* connections ended because of a newer REQ */
    uint64_t no_path;       /* messages without a path for the answer */
    uint64_t no_buffer;     /* messages not sent: no send buffer was free */
    uint64_t no_conn;       /* REQs refused: no connection was free */
    uint64_t retransmits;
    uint64_t timeouts;
    uint64_t restarts; /* times that QP 1 failed and was created again */
};

/* One connection.  Treat as opaque. */
struct cm_conn {
    uint8_t state; /* enum cm_conn_state */
    bool is_active;
    bool is_released; /* the user has released it */
    uint8_t retries_left;
    uint8_t max_retries;
    uint8_t laddr;
    bool is_v1;       /* RoCE v1 */
    uint8_t priority; /* 802.1p of its packets and messages */
    uint16_t neigh;   /* pinned until FREE */
    uint8_t path_mtu;
    uint8_t ack_timeout;
    uint8_t retry_count, rnr_retry_count;
    uint8_t max_rd_atomic, max_dest_rd_atomic;
    uint8_t traffic_class; /* from the REQ; its DSCP is used for them */
    uint8_t private_len;
    uint32_t local_comm_id, remote_comm_id;
    uint32_t local_qpn, remote_qpn;
    uint32_t local_psn, remote_psn;
    uint64_t remote_ca_guid;
    uint64_t service_id;
    uint64_t tid;        /* transaction ID of the exchange in progress */
    uint64_t timeout_us; /* how long to wait for an answer */
    uint64_t deadline_us;
    uint64_t give_up_us; /* end of the wait, whatever retries are left */
    uint64_t reached_us; /* time of the peer's last known answer */
    struct ip_addr local_ip, peer_ip;
    uint16_t local_port;
    uint16_t heap_at;    /* CM_NONE if no timer runs */
    uint16_t next, prev; /* in the free, leaving or resting list */
    uint16_t next_by_id, next_by_qpn;
    bool in_by_id, in_by_qpn;
    const struct cm_ops *ops;
    void *ctx;
    struct cm *cm;
    struct rdma_cm_conn handle;           /* for users of the seam */
    uint8_t private_data[CM_PRIVATE_MAX]; /* of a message that may be resent */
};

struct cm_listener {
    uint64_t service_id; /* 0 if unused */
    const struct cm_ops *ops;
    void *ctx;
};

/* A listener of the seam net/verbs/rdma_cm.h. */
struct cm_rdma_listener {
    const struct rdma_cm_events *events; /* NULL if unused */
    void *ctx;
};

struct cm_list {
    uint16_t head, tail;
};

enum cm_qp_state {
    CM_QP_LIVE,
    CM_QP_FAILED, /* has failed; waits for cm_poll() to create it again */
    CM_QP_ABSENT, /* does not exist; waits for cm_poll() to create it */
};

/* Treat as opaque, except for the counters. */
struct cm {
    struct cm_config config;
    uint64_t now_us;
    uint64_t id_count; /* ids made from random_seed */
    uint32_t tid_count;
    uint8_t qp; /* enum cm_qp_state */
    uint16_t heap_len;
    struct cm_list free, resting;
    struct cm_list leaving; /* released connections that wait for a DREP */
    struct cm_listener listeners[CM_LISTENERS];
    struct cm_rdma_listener rdma_listeners[CM_LISTENERS];
    const struct rdma_cm_ops *rdma_ops; /* set by cm_rdma() */
    uint16_t send_free[CM_SEND_BUFFERS];
    uint16_t send_free_count;
    uint16_t send_neigh[CM_SEND_BUFFERS]; /* pinned until the message is sent */
    struct cm_conn conns[CM_CONNS];
    uint16_t heap[CM_CONNS];
    uint16_t by_id[CM_CONNS], by_qpn[CM_CONNS];
    struct cm_counters counters;
};

/**
 * Set up QP 1 and its receive buffers.  Waits.
 *
 * @return false when the RNIC refused
 */
MUST_USE bool cm_init(struct cm *cm, const struct cm_config *config);

/**
 * Set the time and run due timers.  Call it in every turn of the main loop,
 * before verbs_poll().
 *
 * @param now_us  never goes backwards
 * @return when to call it again at the latest, or CM_NO_DEADLINE
 */
uint64_t cm_poll(struct cm *cm, uint64_t now_us);

/* @return false when no listener is free or the service has one already */
MUST_USE bool cm_listen(struct cm *cm, uint64_t service_id,
                        const struct cm_ops *ops, void *ctx);

void cm_set_ctx(struct cm_conn *conn, void *ctx);

/**
 * Set the arguments of verbs_modify_qp() for all transitions up to RTS.  Call
 * it after ops.request (passive) or ops.replied (active).  The path MTU is the
 * REQ's, the PSN was not used recently, and access is 0.
 */
void cm_qp_attr(const struct cm_conn *conn, struct verbs_qp_attr *attr);

/**
 * Passive, from ops.request on: allow the peer max_dest_rd_atomic outstanding
 * READs, at most its initiator_depth.  Without this call the limit is
 * cm_config.responder_resources.
 */
void cm_serve_reads(struct cm_conn *conn, uint8_t max_dest_rd_atomic);

/**
 * Answer a request with REP.  The QP must be able to receive by now.
 *
 * @param len  0..CM_PRIVATE_MAX
 */
void cm_accept(struct cm_conn *conn, uint32_t qpn, const void *private_data,
               size_t len);

/**
 * Refuse a connection in REQ_RCVD or REP_RCVD.  `conn` is invalid on return and
 * gets no further callbacks.
 *
 * @param reason  enum cm_rej_reason
 * @param len     0..CM_PRIVATE_MAX
 */
void cm_reject(struct cm_conn *conn, uint16_t reason, const void *private_data,
               size_t len);

/**
 * The QP has received data (VERBS_EVENT_QP_ESTABLISHED or a completion).  If
 * the RTU is still missing, this takes its place: ops.established is called at
 * once.
 */
void cm_data_received(struct cm_conn *conn);

/**
 * The peer has acknowledged something that was sent on the connection's QP, so
 * the path to it works.
 */
static inline void cm_data_acknowledged(struct cm_conn *conn)
{
    conn->reached_us = conn->cm->now_us;
}

/** Whether a peer of a live connection over that neighbour answered recently.
 */
bool cm_is_reached(const struct cm *cm, uint16_t neigh);

/* End a connection with a DREQ; ops.disconnected follows.  A second call does
 * nothing. */
void cm_disconnect(struct cm_conn *conn);

/**
 * Release `conn`, whose QP has been destroyed, in any state.  The manager still
 * disconnects the peer, but makes no further callbacks.
 */
void cm_release(struct cm_conn *conn);

struct cm_connect_param {
    uint64_t service_id; /* rdma_ip_cm_service_id() of a port */
    struct ip_addr local_ip, peer_ip;
    uint16_t local_port;
    struct cm_path path; /* its mtu is the connection's */
    uint32_t qpn;
    uint8_t ack_timeout;     /* ib_time code, for both sides */
    uint8_t retry_count;     /* 0..7, for both sides */
    uint8_t rnr_retry_count; /* 0..7, for the peer */
    const void *private_data;
    size_t private_len;       /* 0..CM_PRIVATE_MAX */
    const struct cm_ops *ops; /* replied and disconnected */
    void *ctx;
};

/* Send a REQ.  @return NULL when the pool has no free connection */
MUST_USE struct cm_conn *cm_connect(struct cm *cm,
                                    const struct cm_connect_param *param);

/* Active: answer the REP with an RTU.  The QP must be in RTS. */
void cm_confirm(struct cm_conn *conn);

#endif
