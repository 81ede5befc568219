/* SPDX-License-Identifier: BSD-2-Clause */
/* Declarations that the connection manager's files share.  Only they include
 * it.
 */
#ifndef ESSD_NET_CM_CM_INTERNAL_H
#define ESSD_NET_CM_CM_INTERNAL_H

#include <string.h>

#include "net/cm/cm.h"
#include "net/wire/ib_time.h"
#include "net/wire/rdma_ip_cm.h"

enum {
    CM_NONE = 0xffff,   /* no index */
    CM_INDEX_BITS = 11, /* of a communication id */
    CM_INDEX_MASK = CM_CONNS - 1,

    CM_RNR_RETRY = 7,  /* without limit: users do flow control themselves */
    CM_RNR_TIMER = 12, /* 0.64 ms, if no receive buffer is posted */
    CM_ACK_DELAY = 15, /* target ACK delay of our REP, the same as rxe's */
    CM_HOP_LIMIT = 64,
    CM_SERVICE_TIMEOUT = 20,     /* service timeout of our MRA: 4.3 s */
    CM_MAX_SERVICE_TIMEOUT = 24, /* limit of a peer's: 69 s */
    CM_BUFFER_WAIT_US = 1000,    /* retry when no send buffer was free */

    /*
     * Limits of the drive's own for what a peer asks for in its REQ.  With an
     * ACK time-out of 1.07 s and 7 retries, the RNIC gives a silent peer up
     * after 8.6 s.  Linux asks for 17 or 18.
     */
    CM_MAX_ACK_TIMEOUT = 18,
    CM_MIN_TIMEOUT = 12, /* 17 ms until our REP or DREQ is repeated: a request
                          * whose address is forged costs its sender nothing */
    CM_PEER_LIMIT_US = 10000000, /* for an answer to our REP or DREQ, with all
                                  * retries and with the patience of MRAs */
};
_Static_assert(1 << CM_INDEX_BITS == CM_CONNS, "a comm id's low bits");

/* ---- cm_pool.c: connections, their state, look-ups and timers */

void cm_pool_init(struct cm *cm);

/*
 * Take a free connection, or one that cm_pool_forget() frees; NULL when there
 * is none.  It gets a communication id that was not used recently.
 */
struct cm_conn *cm_pool_take(struct cm *cm);

/*
 * Free the connection that has been in TIMEWAIT longest, else the released one
 * that has waited longest for a DREP, because its entry or its neighbour is
 * needed.  @return false when there is none
 */
bool cm_pool_forget(struct cm *cm);

/* The only writer of conn->state.  Also updates indexes, timer and pins. */
void cm_conn_enter(struct cm_conn *conn, enum cm_conn_state next);

/* Free a connection that its user released and whose TIMEWAIT is over. */
void cm_conn_settle(struct cm_conn *conn);

/* Mark the connection as released by its user.  It may be FREE on return. */
void cm_conn_disown(struct cm_conn *conn);

struct cm_conn *cm_by_local_id(struct cm *cm, uint32_t local_comm_id);
/*
 * The peer chooses these numbers, so the neighbour (address, port and VLAN) is
 * part of the key: messages of other peers do not find the connection.
 */
struct cm_conn *cm_by_remote_id(struct cm *cm, uint64_t guid, uint16_t neigh,
                                uint32_t remote_comm_id);
struct cm_conn *cm_by_remote_qpn(struct cm *cm, uint64_t guid, uint16_t neigh,
                                 uint32_t qpn);
/* Add the peer's numbers, which are now known, to the indexes. */
void cm_index_remote(struct cm_conn *conn);

void cm_timer_set(struct cm_conn *conn, uint64_t deadline_us);
void cm_timer_stop(struct cm_conn *conn);
struct cm_conn *cm_timer_first(struct cm *cm);

/* ---- cm_send.c: sent messages */

/* The destination of an answer, and the message that it answers. */
struct cm_answer {
    struct cm_path path;
    uint64_t tid;
    uint32_t local_comm_id, remote_comm_id;
};

bool cm_send_req(struct cm_conn *conn);
bool cm_send_rep(struct cm_conn *conn);
bool cm_send_dreq(struct cm_conn *conn);
void cm_send_rtu(struct cm_conn *conn);
void cm_send_mra(const struct cm_conn *conn, enum cm_answered message);
void cm_send_drep(struct cm *cm, const struct cm_answer *answer);
void cm_send_rej(struct cm *cm, const struct cm_answer *answer,
                 enum cm_answered message, uint16_t reason, const void *ari,
                 size_t ari_len, const void *private_data, size_t len);
/* The destination of answers within a connection. */
struct cm_answer cm_conn_answer(const struct cm_conn *conn);
void cm_send_rej_timeout(struct cm_conn *conn, enum cm_answered message);
uint64_t cm_new_tid(struct cm *cm);

void cm_send_init(struct cm *cm);
void cm_send_done(struct cm *cm, uint16_t buffer);
/* QP 1 was destroyed: all send buffers are free again. */
void cm_send_reset(struct cm *cm);

/* ---- cm_observe.c: trace events */

/*
 * Trace a message that is being sent or was received.
 *
 * @param mad   MAD_LEN bytes
 * @param peer  16 bytes; NULL for the peer of the connection, if that is known
 */
void cm_observe(struct cm *cm, enum trace_type type, const uint8_t *mad,
                const uint8_t *peer);

/* ---- cm_recv.c: received messages */

void cm_recv(struct cm *cm, const uint8_t *buffer, size_t len);

/* End the connection: enter TIMEWAIT and call ops.disconnected. */
void cm_conn_end(struct cm_conn *conn, const struct cm_end *end);
void cm_conn_establish(struct cm_conn *conn);

#endif
